"""The supervisor's end of a zygote: starts one, takes workers from it, and notices when it is gone."""

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from agentrl_envs.zerotir.sandbox.inside.zygote import READY
from agentrl_envs.zerotir.sandbox.results import Limits, SandboxDied, SandboxUnavailable

_BOOT = "import sys; sys.path.insert(0, {!r}); from inside import launcher; del sys.path[0]; launcher.main()"
_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "MPLBACKEND": "Agg",
    }
)
"""The whole environment of the code: nothing of the trainer's."""
_NUM_ENDS = 5
_STOP_S = 2.0


@dataclass(frozen=True)
class Worker:
    """A process that waits for code, and the ends of its pipes."""

    job: int
    out: int
    err: int
    report: int
    process: int
    """A pidfd: no other process ever takes its place."""

    def kill(self) -> None:
        """Ends it, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def close(self) -> None:
        """Closes our ends."""
        for end in (self.job, self.out, self.err, self.report, self.process):
            os.close(end)


@dataclass(frozen=True)
class Order:
    """What a zygote is to be."""

    mode: str
    """"ns" or "landlock"."""
    preload: Sequence[str]
    """Libraries to import before the first fork."""
    limits: Limits
    python: str
    """The interpreter's executable."""
    spares: int
    """Workers that are forked before they are asked for."""


class Zygote:
    """A running zygote.

    Raises:
        SandboxUnavailable: it cannot be what it is to be; says why.
    """

    def __init__(self, order: Order, *, start_s: float) -> None:
        self._control, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [order.python, "-I", "-c", _BOOT.format(str(Path(__file__).parent)), str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(_SETTINGS),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        self._waiting: queue.SimpleQueue[Worker | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._receiver: threading.Thread | None = None
        self.is_gone = False
        """Whether it has ended, by itself or by `stop`."""
        try:
            self._greet(order, start_s)
        except SandboxUnavailable:
            self.stop()
            raise
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()
        self._ask(order.spares)

    def take(self) -> Worker:
        """Gives a fresh worker.

        Raises:
            SandboxDied: the zygote is gone.
        """
        self._ask(1)
        worker = self._waiting.get()
        if worker is None:
            self._waiting.put(None)  # for the next who asks
            raise SandboxDied("the sandbox's zygote has ended")
        return worker

    def stop(self) -> None:
        """Ends it and every worker."""
        with contextlib.suppress(OSError):  # the other side may have closed it
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.is_gone = True
        if self._receiver is not None:
            self._receiver.join()
        self._control.close()
        while not self._waiting.empty():
            worker = self._waiting.get()
            if worker is not None:
                worker.close()
        self._waiting.put(None)

    def _greet(self, order: Order, start_s: float) -> None:
        assert self._process.stdin is not None
        orders = {"mode": order.mode, "preload": list(order.preload), "limits": asdict(order.limits)}
        with self._process.stdin as orders_end:
            orders_end.write(json.dumps(orders).encode())
        self._control.settimeout(start_s)
        try:
            answer = self._control.recv(1 << 12)
        except TimeoutError as error:
            raise SandboxUnavailable(f"it did not start within {start_s:g} s") from error
        if answer != READY:
            raise SandboxUnavailable(answer[1:].decode(errors="replace") or "it ended while starting")
        self._control.settimeout(None)

    def _ask(self, num: int) -> None:
        try:
            with self._lock:
                self._control.sendall(b"w" * num)
        except OSError:
            self.is_gone = True  # `take` will find nobody

    def _receive(self) -> None:
        while True:
            try:
                message, ends, _, _ = socket.recv_fds(self._control, 1, _NUM_ENDS)
            except OSError:
                message, ends = b"", []
            if not message:
                self.is_gone = True
                self._waiting.put(None)
                return
            if len(ends) == _NUM_ENDS:
                self._waiting.put(Worker(*ends))
