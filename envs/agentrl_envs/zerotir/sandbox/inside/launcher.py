"""The first process of a sandbox: it finds the interpreter's files, enters its tier and becomes the zygote."""

import json
import os
import random
import resource
import site
import socket
import sys
import sysconfig
from typing import Any

from . import kernel, namespaces, seccomp
from .worker import Setting
from .zygote import FAILED, preload, serve_forks

_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo")
_FILES = ("/etc/ld.so.cache", "/etc/localtime")
_UNUSED_UIDS = range(61184, 65520)
"""They own no files: systemd lends them to services. A container of 65,536 users has them."""


def main() -> None:
    """Reads its orders from stdin; the control socket is the file descriptor in argv."""
    orders = json.load(sys.stdin)
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        _launch(orders, control)
    except BaseException as error:  # whatever it is, the supervisor must hear of it and nobody else can
        control.sendall(FAILED + f"{type(error).__name__}: {error}".encode())
        os._exit(1)


def _launch(orders: dict[str, Any], control: socket.socket) -> None:
    readable = interpreter_paths()
    sys.path[:] = [path for path in sys.path if any(_is_below(path, root) for root in readable)]
    scratch = "/scratch" if any(_is_below(path, "/tmp") for path in readable) else "/tmp"  # /tmp would be covered
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch
    if orders["mode"] == "ns":
        namespaces.enter()
        child = os.fork()
        if child:
            control.close()
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
        kernel.die_with_parent()  # not in the other tier: there the parent is a thread of the trainer's
    uid = namespaces.NOBODY if orders["mode"] == "ns" else random.choice(_UNUSED_UIDS)  # threads are counted by user
    statm = os.open("/proc/self/statm", os.O_RDONLY)  # soon there may be no /proc
    if orders["mode"] == "ns":
        namespaces.build_root(readable, scratch)
    preload(orders["preload"])
    setting = Setting(
        mode=orders["mode"],
        limits=orders["limits"],
        scratch=scratch,
        uid=None if os.getuid() else uid,
        file_uid=uid if orders["mode"] == "ns" or all(map(_others_may_read, readable)) else 0,
        interpreter_bytes=int(os.read(statm, 64).split()[0]) * resource.getpagesize(),
        program=seccomp.worker_program(may_change_files=orders["mode"] == "ns"),
    )
    os.close(statm)
    serve_forks(control, setting, readable)


def interpreter_paths() -> list[str]:
    """Gives the files and directories that the interpreter needs, outermost only."""
    found = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {os.path.dirname(os.path.realpath(sys.executable)), *site.getsitepackages(), *_SYSTEM}
    found |= {os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix)}
    paths: list[str] = []
    for path in sorted(os.path.abspath(path) for path in found if path and os.path.exists(path)):
        if not any(_is_below(path, outer) for outer in paths):
            paths.append(path)
    return [*paths, *filter(os.path.exists, _FILES)]


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _others_may_read(path: str) -> bool:
    """Tells whether every directory on the way can be entered by everyone."""
    while path != "/":
        if not os.stat(path).st_mode & 0o005 and not os.path.islink(path):
            return False
        path = os.path.dirname(path)
    return True
