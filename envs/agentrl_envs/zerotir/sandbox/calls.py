"""One call: send code to a worker, read its pipes, stop it at a limit, say what came of it."""

import json
import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass

from agentrl_envs.zerotir.sandbox.host import Worker
from agentrl_envs.zerotir.sandbox.inside.zygote import EXIT
from agentrl_envs.zerotir.sandbox.results import Limits, Result, SandboxDied, Status

_CHUNK = 1 << 16
_REAP_S = 5.0


@dataclass(frozen=True)
class Request:
    """What a worker is sent."""

    code: str
    session: bool
    """Whether the worker lives on afterwards."""
    first: bool
    """Whether it is the worker's first: it then says that it is confined before it is sent anything."""
    wall_s: float

    def encode(self) -> bytes:
        """Gives its bytes on the wire."""
        body = json.dumps({"code": self.code, "session": self.session}).encode()
        return struct.pack("I", len(body)) + body


class Call:
    """A request on its way through a worker; it is made once."""

    def __init__(self, worker: Worker, request: Request, limits: Limits) -> None:
        self._worker = worker
        self._request = request
        self._limits = limits
        self._to_send = memoryview(request.encode())
        self._output = {worker.out: bytearray(), worker.err: bytearray()}
        self._poll = select.poll()
        self._confined = not request.first
        self._stopped: Status | None = None
        self._exit: bytes | None = None
        self._status: int | None = None

    def result(self) -> Result:
        """Waits for the end, or brings it about.

        Raises:
            SandboxDied: the worker or the zygote broke.
        """
        started = time.perf_counter()
        deadline = started + self._request.wall_s
        with socket.socket(fileno=os.dup(self._worker.job)) as job:
            job.setblocking(False)
            self._poll.register(job, select.POLLOUT if self._confined else select.POLLIN)
            for end in self._output:
                os.set_blocking(end, False)
                self._poll.register(end, select.POLLIN)
            self._poll.register(self._worker.report, select.POLLIN)
            while self._exit is None and self._status is None:
                left = deadline - time.perf_counter()
                if left <= 0:
                    if self._stopped == "timeout":
                        raise SandboxDied(f"a killed worker did not end within {_REAP_S:g} s")
                    self._stop("timeout")
                    deadline += _REAP_S
                for ready, event in self._poll.poll(max(1.0, left * 1000)):
                    self._serve(ready, event, job)
        for end in self._output:
            self._read(end)
        return self._finish((time.perf_counter() - started) * 1000)

    @property
    def lives_on(self) -> bool:
        """Whether the worker takes another call."""
        return self._status is not None and self._stopped is None

    def _serve(self, ready: int, event: int, job: socket.socket) -> None:
        if ready == self._worker.report:
            self._exit = os.read(ready, EXIT.size)
        elif ready in self._output:
            if not self._read(ready):
                self._poll.unregister(ready)
        elif event & select.POLLOUT:
            self._send(job)
        else:
            self._hear(job)

    def _send(self, job: socket.socket) -> None:
        try:
            self._to_send = self._to_send[job.send(self._to_send) :]
        except (BrokenPipeError, ConnectionResetError):
            self._to_send = self._to_send[:0]  # it has ended; the report will say how
        if not self._to_send and self._request.session:
            self._poll.modify(job, select.POLLIN)
        elif not self._to_send:
            self._poll.unregister(job)

    def _hear(self, job: socket.socket) -> None:
        """Takes the byte by which a worker says that it is confined, or a session that a call is done."""
        try:
            told = job.recv(1)
        except ConnectionResetError:
            told = b""
        if not told:
            self._poll.unregister(job)  # it has ended
        elif self._confined:
            self._status = told[0]
        else:
            self._confined = True
            self._poll.modify(job, select.POLLOUT)

    def _read(self, end: int) -> bool:
        """Reads what is there, up to the limit, and tells whether there may be more."""
        output, limit = self._output[end], self._limits.output_bytes
        while len(output) <= limit:
            try:
                chunk = os.read(end, min(_CHUNK, limit + 1 - len(output)))
            except BlockingIOError:
                return True
            if not chunk:
                return False
            output += chunk
        self._stop("output_limit")
        return False

    def _stop(self, why: Status) -> None:
        self._stopped = self._stopped or why
        self._worker.kill()

    def _finish(self, wall_ms: float) -> Result:
        stdout, stderr = (bytes(self._output[end]) for end in (self._worker.out, self._worker.err))
        wait_status, cpu_s = (self._status or 0) << 8, 0.0
        if self._exit is not None:
            if len(self._exit) != EXIT.size:
                raise SandboxDied("the sandbox's zygote ended during a call")
            wait_status, cpu_s, _ = EXIT.unpack(self._exit)
        if not self._confined:
            raise SandboxDied(f"a worker could not be confined: {stderr[:500].decode(errors='replace')}")
        killed_by = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else None
        status = self._stopped or self._told(wait_status, killed_by, cpu_s)
        kept = (text[: self._limits.output_bytes].decode(errors="replace") for text in (stdout, stderr))
        return Result(status, *kept, wall_ms=wall_ms, signal=killed_by)

    def _told(self, wait_status: int, killed_by: int | None, cpu_s: float) -> Status:
        if killed_by == signal.SIGXCPU or (killed_by == signal.SIGKILL and cpu_s >= self._limits.cpu_s):
            return "cpu_limit"
        if killed_by is not None:
            return "killed"
        return "ok" if wait_status == 0 else "error"
