"""A worker: it gives up every right, then runs what it is sent."""

import builtins
import json
import os
import resource
import signal
import struct
import sys
import threading
from dataclasses import dataclass
from typing import Any

from . import kernel, namespaces, seccomp, snippet

CONFINED = b"c"
"""What a worker says before it takes any code; one that ends without has run none."""
_SETUP_FAILED = 125
_JOB = 3
_RECURSION_LIMIT = 3000
_MAX_INT_DIGITS = 200_000
_HEADER = struct.Struct("I")


@dataclass(frozen=True)
class Setting:
    """What a worker must know; `Limits` of the supervisor and what the launcher found."""

    mode: str
    """"ns" or "landlock"."""
    limits: dict[str, Any]
    scratch: str
    """The one directory that is writable, in ns mode."""
    uid: int | None
    """The user to become, None to stay a plain one. No limit of threads holds for root."""
    file_uid: int
    """As whom to open files then; root where nobody else may read the interpreter."""
    interpreter_bytes: int
    """Address space that the interpreter and its libraries take."""
    program: bytes
    """The seccomp filter of `seccomp.worker_program`."""


def serve(setting: Setting, job: int, out: int, err: int) -> None:
    """Runs the code that arrives at `job`; never comes back."""
    _keep_only(job, out, err)
    _confine(setting)
    _prepare_python()
    os.write(_JOB, CONFINED)
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    received = b""
    for number in range(1, sys.maxsize):
        request, received = _receive(received)
        once = not request["session"]
        if once:
            os.close(_JOB)
        _limit_cpu(setting.limits, once=once)
        name = "<code>" if number == 1 else f"<code {number}>"
        status = snippet.run_snippet(request["code"], names, name=name)
        _finish_output(once=once)
        if once:
            os._exit(status)
        os.write(_JOB, bytes([status]))


def _keep_only(job: int, out: int, err: int) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((null, out, err, job)):
        os.dup2(source, target)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(_JOB + 1, soft)


def _confine(setting: Setting) -> None:
    limits, in_namespaces = setting.limits, setting.mode == "ns"
    parent = os.getppid()
    if in_namespaces:
        namespaces.mount_scratch(setting.scratch, limits["scratch_mib"])
        os.chdir(setting.scratch)
    else:
        os.chdir(sys.prefix)
    if setting.uid is not None:
        _become(setting.uid, setting.file_uid)
    kernel.drop_capabilities()
    kernel.die_with_parent()
    if os.getppid() != parent:
        os._exit(_SETUP_FAILED)  # the zygote ended just before it could take us with it
    kernel.hide_memory()
    kernel.gain_no_privileges()
    _limit(setting)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    seccomp.install(seccomp.for_process(setting.program, os.getpid()))


def _become(uid: int, file_uid: int) -> None:
    try:
        os.setgroups([])
        os.setresgid(namespaces.NOBODY, namespaces.NOBODY, namespaces.NOBODY)
        kernel.become(uid, file_uid=file_uid)
    except OSError as error:
        message = f"root must become user {uid}: let it have CAP_SETUID and CAP_SETGID and map that user, or be no root"
        raise OSError(f"{message} ({error})") from error


def _limit(setting: Setting) -> None:
    limits = setting.limits
    memory = setting.interpreter_bytes + (limits["memory_mib"] << 20)
    file_bytes = limits["scratch_mib"] << 20
    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, max(limits["session_cpu_s"], limits["cpu_s"] + 1)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NPROC, limits["threads"]),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(what, (value, value))


def _limit_cpu(limits: dict[str, Any], *, once: bool) -> None:
    """Allows the next snippet its CPU time: SIGXCPU at the limit, SIGKILL a second or a session's limit later."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    soft = min(most, int(used.ru_utime + used.ru_stime) + limits["cpu_s"])
    resource.setrlimit(resource.RLIMIT_CPU, (soft, min(most, soft + 1) if once else most))


def _prepare_python() -> None:
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=8192, encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    sys.set_int_max_str_digits(_MAX_INT_DIGITS)


def _receive(received: bytes) -> tuple[dict[str, Any], bytes]:
    """Gives the next request and the bytes after it; ends the process when nobody asks any more."""
    while len(received) < _HEADER.size or len(received) < _HEADER.size + _HEADER.unpack_from(received)[0]:
        more = os.read(_JOB, 1 << 16)
        if not more:
            os._exit(0)
        received += more
    end = _HEADER.size + _HEADER.unpack_from(received)[0]
    return json.loads(received[_HEADER.size : end]), received[end:]


def _finish_output(*, once: bool) -> None:
    try:
        if once:
            threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]  # joins threads, as an exit does
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # the snippet may have closed or replaced them: what it printed is then lost to it
        return
