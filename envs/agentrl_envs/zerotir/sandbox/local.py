"""The sandbox of this machine: processes without rights, in namespaces or under Landlock."""

import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from agentrl_envs.zerotir.sandbox.calls import Call, Request
from agentrl_envs.zerotir.sandbox.host import Order, Worker, Zygote
from agentrl_envs.zerotir.sandbox.results import Limits, Result, SandboxDied, SandboxUnavailable
from agentrl_envs.zerotir.sandbox.selftest import assert_confined

Mode = Literal["auto", "ns", "landlock"]
_TIERS = ("ns", "landlock")
_START_S = 60.0
_HELP = (
    "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, "
    "or a container started with --security-opt seccomp=unconfined), use Linux 5.13 or newer with Landlock, or name an "
    "HTTP sandbox server"
)


class Sandbox:
    """Runs code in workers forked from a zygote. If the zygote dies, the next call starts another.

    Code in which no preloaded library is named is run by a second zygote without them, whose forks cost half as much.

    Raises:
        SandboxUnavailable: no tier can be entered here, or its self-test failed. Code is never run unconfined.
    """

    def __init__(
        self,
        mode: Mode = "auto",
        *,
        preload: Sequence[str] = ("numpy", "sympy"),
        limits: Limits | None = None,
        spares: int = 4,
        python: str = sys.executable,
    ) -> None:
        """Starts the zygote and attacks it.

        Args:
            mode: `ns` (namespaces), `landlock`, or `auto`, the first of the two that works.
            preload: libraries that code may use without waiting for their import.
            limits: of each call; the defaults of `Limits` for None.
            spares: workers forked ahead of the calls.
            python: the interpreter, which must have the libraries.
        """
        self.limits = limits or Limits()
        self._lock = threading.Lock()
        self._closed = False
        self._libraries = tuple(preload)
        self._named = re.compile(rf"\b(?:{'|'.join(map(re.escape, preload))})\b") if preload else None
        self._zygotes: dict[tuple[str, ...], Zygote] = {}
        reasons: list[str] = []
        for tier in _TIERS if mode == "auto" else (mode,):
            self._order = Order(tier, self._libraries, self.limits, python, spares)
            try:
                self._zygotes[self._libraries] = self._started(self._order)
            except (SandboxUnavailable, SandboxDied) as error:
                reasons.append(f"{tier}: {error}")
            else:
                self.mode = tier
                return
        raise SandboxUnavailable(
            f"sandbox: model-written code is not run, nothing confines it; {_HELP}. Tried " + "; ".join(reasons)
        )

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Runs code in a fresh worker; tried once more, in another zygote, when the sandbox breaks."""
        request = Request(code, session=False, first=True, wall_s=wall_s or self.limits.wall_s)
        libraries = self._libraries if self._named and self._named.search(code) else ()
        try:
            return self._run_in(self._living(libraries), request)
        except SandboxDied:
            return self._run_in(self._living(libraries), request)

    def session(self) -> "LocalSession":
        """Gives a worker that keeps its variables."""
        return LocalSession(self._living(self._libraries).take(), self.limits)

    def close(self) -> None:
        """Ends the zygotes and every worker."""
        with self._lock:
            self._closed = True
            for zygote in self._zygotes.values():
                zygote.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run_in(self, zygote: Zygote, request: Request) -> Result:
        worker = zygote.take()
        try:
            return Call(worker, request, self.limits).result()
        finally:
            worker.kill()  # also what the code may have left running
            worker.close()

    def _living(self, libraries: tuple[str, ...]) -> Zygote:
        """Gives the zygote that has loaded `libraries`; starts it if there is none, or none any more."""
        with self._lock:
            if self._closed:
                raise SandboxDied("the sandbox has been closed")
            zygote = self._zygotes.get(libraries)
            if zygote is not None and zygote.is_gone:
                zygote.stop()
            if zygote is None or zygote.is_gone:
                zygote = self._zygotes[libraries] = self._started(replace(self._order, preload=libraries))
            return zygote

    def _started(self, order: Order) -> Zygote:
        zygote = Zygote(order, start_s=_START_S)
        try:
            assert_confined(
                lambda code: self._run_in(zygote, Request(code, session=False, first=True, wall_s=self.limits.wall_s))
            )
        except (SandboxUnavailable, SandboxDied):
            zygote.stop()
            raise
        return zygote


class LocalSession:
    """A worker that keeps its variables from call to call; once a limit has stopped it, it stays stopped."""

    def __init__(self, worker: Worker, limits: Limits) -> None:
        self._worker = worker
        self._limits = limits
        self._first = True
        self.is_open = True
        """Whether it still takes code."""

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Runs code after what was run before."""
        if not self.is_open:
            return Result("killed", "", "the interpreter was stopped in an earlier call", wall_ms=0.0)
        wall_s = wall_s or self._limits.wall_s
        request = Request(code, session=True, first=self._first, wall_s=wall_s)
        self._first = False
        call = Call(self._worker, request, self._limits)
        try:
            return call.result()
        finally:
            if not call.lives_on:
                self.close()

    def close(self) -> None:
        """Ends the worker."""
        if self.is_open:
            self.is_open = False
            self._worker.kill()
            self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
