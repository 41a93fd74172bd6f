"""The zygote: libraries are loaded once, and each worker is a fork of it."""

import contextlib
import gc
import importlib
import os
import random
import select
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from . import kernel, landlock
from .worker import Setting, serve

READY, FAILED = b"R", b"E"
EXIT = struct.Struct("idl")
"""What is told of a worker that ended: wait status, CPU time in seconds, greatest resident size in KiB."""
_READABLE_DEVICES = ("/dev/zero", "/dev/urandom", "/dev/random")
_MODULES = (
    *("ast", "bisect", "cmath", "collections", "decimal", "fractions", "functools", "heapq", "itertools", "linecache"),
    *("math", "re", "statistics", "string", "traceback"),
)
_LAZY = {
    "numpy": ("numpy.fft", "numpy.linalg", "numpy.polynomial", "numpy.random"),
    "math_verify": ("math_verify.parser", "math_verify.grader"),
}
"""Parts that a library loads at first use, which would then be paid for in every worker."""


def preload(libraries: Sequence[str]) -> None:
    """Imports libraries, and fills what sympy computes once."""
    for name in (*libraries, *_MODULES, *(part for library in libraries for part in _LAZY.get(library, ()))):
        importlib.import_module(name)
    if "sympy" in libraries:
        sympy = importlib.import_module("sympy")
        x = sympy.Symbol("x")
        _ = sympy.solve(x**2 - 2, x), sympy.integrate(sympy.sin(x), x), sympy.simplify(x + x), str(sympy.factorint(30))


def serve_forks(control: socket.socket, setting: Setting, readable: Sequence[str]) -> None:
    """Forks a worker for every byte that arrives at `control`, and ends when the other side closes it."""
    kernel.bound_capabilities()
    if setting.mode == "landlock":
        kernel.gain_no_privileges()
        if setting.uid is None:
            kernel.drop_capabilities()
        landlock.confine([*readable, *_READABLE_DEVICES], writable=["/dev/null"])
    kernel.hide_memory()
    gc.collect()
    gc.freeze()  # or the collector would write to, and so copy, every page in every worker
    gc.disable()
    control.sendall(READY)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    running: dict[int, _Running] = {}
    while True:
        for ready, _ in poll.poll():
            if ready in running:
                poll.unregister(ready)
                running.pop(ready).report(ready)
            elif control.recv(1):
                process, one = _fork(control, setting)
                running[process] = one
                poll.register(process, select.POLLIN)
            else:
                os._exit(0)


@dataclass(frozen=True)
class _Running:
    pid: int
    report_end: int

    def report(self, process: int) -> None:
        """Tells the supervisor how the worker ended."""
        _, status, used = os.wait4(self.pid, 0)
        with contextlib.suppress(BrokenPipeError):  # of a session that was closed nobody wants to know
            os.write(self.report_end, EXIT.pack(status, used.ru_utime + used.ru_stime, used.ru_maxrss))
        os.close(self.report_end)
        os.close(process)


def _fork(control: socket.socket, setting: Setting) -> tuple[int, _Running]:
    """Starts a worker and sends the supervisor its five ends: job, stdout, stderr, report, process."""
    job, job_inside = socket.socketpair()
    (out, out_inside), (err, err_inside), (report, report_inside) = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_worker(setting, job_inside.fileno(), out_inside, err_inside)
    process = os.pidfd_open(pid)
    socket.send_fds(control, [b"W"], [job.fileno(), out, err, report, process])
    job.close()
    job_inside.close()
    for end in (out, out_inside, err, err_inside, report):
        os.close(end)
    return process, _Running(pid, report_inside)


def _become_worker(setting: Setting, job: int, out: int, err: int) -> None:
    try:
        gc.enable()
        random.seed()
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed(int.from_bytes(os.urandom(4), "little"))
        serve(setting, job, out, err)
    except BaseException as error:  # nothing has been run yet, and nothing will be
        os.write(2, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)
