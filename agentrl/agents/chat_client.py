"""HTTP to a server that speaks OpenAI's chat completions: tries again what may pass, and says what will not.

The key is sent to the named server only: redirects are refused, and an answer that repeats the key has it blotted out.
"""

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentrl.errors import EndpointError

_PATH = "/chat/completions"
_MAY_PASS = {408, 409, 425, 429, 500, 502, 503, 504}
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_SHOWN_CHARS = 300
_TOO_LONG = ("context_length_exceeded", "maximum context length", "max_model_len", "context window")


class TooLong(EndpointError):
    """The messages and the answer do not fit into the model's context."""


@dataclass(frozen=True)
class ChatClient:
    """One server. May be called from many threads at once."""

    url: str
    """Base of the server, such as http://localhost:8000/v1, or the whole address of its chat completions."""
    key: str | None = field(default=None, repr=False)
    """Sent as a bearer token; None, the default, sends none."""
    timeout_s: float = 120.0
    """Seconds of silence after which a request counts as lost."""
    max_tries: int = 6
    """How often a request is made that fails in a way that may pass, waiting 1, 2, 4 ... 60 s in between."""
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise EndpointError(
                f"URL {self.url!r}: no http:// or https:// address; write e.g. http://localhost:8000/v1"
            )
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise EndpointError(
                f"{self.url}: the key holds characters that no key has, such as a line break; see to it"
            )

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Gives the server's answer to a request for a chat completion.

        Raises:
            TooLong: the request does not fit.
            EndpointError: the server refuses it, cannot be reached, or answers something else.
        """
        reason = ""
        for number in range(1, self.max_tries + 1):
            try:
                return self._answer(body)
            except urllib.error.HTTPError as error:
                told = self._told(error)
                if error.code not in _MAY_PASS:
                    raise self._refusal(error, told, str(body.get("model"))) from None
                wait_s, reason = _asked_wait_s(error), f"{error.code} {told}"
            except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                wait_s, reason = None, self._blotted(f"{type(error).__name__}: {error}")
            if number < self.max_tries:
                self.sleep(_wait_s(number, body.get("seed")) if wait_s is None else wait_s)
        raise EndpointError(f"{self.url}: no answer in {self.max_tries} tries; the last: {reason}; is the server up?")

    def _answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        base = self.url.rstrip("/")
        address = base if base.endswith(_PATH) else base + _PATH
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=self.timeout_s) as answer:
            found = json.load(answer)
        if not isinstance(found, dict) or not found.get("choices"):
            told = self._blotted(json.dumps(found))[:_SHOWN_CHARS]
            raise EndpointError(f"{self.url}: answers with no choices: {told}; is it a server of chat completions?")
        return found

    def _refusal(self, error: urllib.error.HTTPError, told: str, model: str) -> EndpointError:
        if any(mark in told.lower() for mark in _TOO_LONG):
            return TooLong(f"{self.url}: {told}")
        what_to_do = {
            401: "set the environment variable that endpoint.key_env names to a valid key",
            403: "this key may not use this model; ask for another, or name another model",
            404: f"check the URL, which mostly ends in /v1, and that it has the model {model!r}",
        }.get(error.code, "the request is not what this server takes; see its message")
        if 300 <= error.code < 400:
            told, what_to_do = f"redirects to {error.headers.get('Location')}", "name that URL if it is meant"
        return EndpointError(f"{self.url}: refuses with {error.code}: {told}; {what_to_do}")

    def _told(self, error: urllib.error.HTTPError) -> str:
        """Gives what the server says of a failure, in a line."""
        try:
            text = error.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            text = ""
        try:
            found = json.loads(text)
            inner = found.get("error", found)
            text = " ".join(str(inner[key]) for key in ("message", "code") if inner.get(key))
        except (AttributeError, TypeError, ValueError):
            pass
        return self._blotted(" ".join(text.split()))[:_SHOWN_CHARS] or error.reason

    def _blotted(self, text: str) -> str:
        return text.replace(self.key, "***") if self.key else text


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follows none: the key is for the server that was named."""


def _asked_wait_s(error: urllib.error.HTTPError) -> float | None:
    asked = error.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_WAIT_S) if asked.replace(".", "", 1).isdigit() else None


def _wait_s(number: int, seed: object) -> float:
    """Gives a wait that doubles with every try, up to half of it less by the request's seed, so that many spread."""
    return min(_FIRST_WAIT_S * 2 ** (number - 1), _LONGEST_WAIT_S) * random.Random(f"{seed} {number}").uniform(0.5, 1)
