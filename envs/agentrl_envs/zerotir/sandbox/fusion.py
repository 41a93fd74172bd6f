"""A SandboxFusion server as sandbox: code is sent over HTTP and isolated there."""

import json
import time
import urllib.error
import urllib.request
from typing import Any, Self

from agentrl.errors import EnvError
from agentrl_envs.zerotir.sandbox.results import Limits, Result, SandboxDied, Session, Status

_READ_S = 15.0
"""Seconds that the server may take beyond the code's own time."""
_ATTEMPTS = 3
_STATUSES: dict[str, Status] = {"Finished": "ok", "Error": "error", "TimeLimitExceeded": "timeout"}


class FusionSandbox:
    """Runs code on a SandboxFusion server (its `/run_code`). Each call stands alone: the server keeps no state."""

    def __init__(self, url: str, *, limits: Limits | None = None) -> None:
        """Makes a client.

        Args:
            url: of the server, such as http://localhost:8080.
            limits: `wall_s` and `output_bytes` are kept here, the others are the server's own.
        """
        self.limits = limits or Limits()
        self._url = f"{url.rstrip('/')}/run_code"

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Runs code; a request that fails is sent again, three times in all."""
        wall_s = wall_s or self.limits.wall_s
        body = {"code": code, "language": "python", "run_timeout": wall_s, "compile_timeout": wall_s}
        failures: list[str] = []
        for _ in range(_ATTEMPTS):
            started = time.perf_counter()
            try:
                answer = self._post(body, timeout_s=wall_s + _READ_S)
                return self._result(answer, wall_ms=1000 * (time.perf_counter() - started))
            except (OSError, ValueError, KeyError, TypeError) as error:
                failures.append(f"{type(error).__name__}: {error}")
        raise SandboxDied(f"{self._url} failed {_ATTEMPTS} times: {'; '.join(failures)}")

    def session(self) -> Session:
        """Raises EnvError: there is none here."""
        raise EnvError(f"{self._url}: a SandboxFusion server keeps no state between calls; set state: call")

    def close(self) -> None:
        """Holds nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _post(self, body: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return json.load(response)

    def _result(self, answer: dict[str, Any], *, wall_ms: float) -> Result:
        """Reads an answer.

        Raises:
            ValueError: the server says that it failed, and not the code.
        """
        if answer["status"] not in ("Success", "Failed"):
            raise ValueError(f"{answer['status']}: {answer.get('message')}")
        found = answer["run_result"]
        limit = self.limits.output_bytes
        streams = [str(found.get(name) or "").encode() for name in ("stdout", "stderr")]
        status = "output_limit" if max(map(len, streams)) > limit else _STATUSES[found["status"]]
        if status == "ok" and found.get("return_code"):
            status = "error"
        stdout, stderr = (stream[:limit].decode(errors="replace") for stream in streams)
        return Result(status, stdout, stderr, wall_ms=wall_ms)
