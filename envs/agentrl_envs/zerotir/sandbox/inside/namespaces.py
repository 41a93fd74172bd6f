"""Namespaces: a world of its own with nothing in it but the interpreter."""

import os
import socket
from collections.abc import Sequence

from . import kernel

NOBODY = 65534
_INSIDE_UID = 1000
_HOST_NAME = "sandbox"
_LOCKED_FLAGS = {8: kernel.MS_NOEXEC, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""statvfs flag and mount flag of what a remount must keep: noexec, noatime, nodiratime, relatime."""
_DEVICES = ("null", "zero", "urandom", "random")


def enter() -> None:
    """Moves this process into new namespaces; the next child is the first process of the new pid namespace.

    Root keeps its id and maps nobody's beside it, for the workers. A plain user maps its own.
    """
    if os.getuid() == 0:
        _enter_as_root()
    else:
        uid, gid = os.getuid(), os.getgid()
        kernel.unshare(kernel.CLONE_ALL_NEW)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{_INSIDE_UID} {uid} 1")
        _write("/proc/self/gid_map", f"{_INSIDE_UID} {gid} 1")
    socket.sethostname(_HOST_NAME)


def build_root(paths: Sequence[str], scratch: str) -> None:
    """Replaces the root directory by a read-only one that holds `paths`, four devices and an empty `scratch`."""
    kernel.mount(None, "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    base = "/tmp" if os.path.isdir("/tmp") else "/mnt"
    kernel.mount("tmpfs", base, kind="tmpfs", flags=kernel.MS_NOSUID | kernel.MS_NODEV, options="size=1m,mode=755")
    os.mkdir(f"{base}/.old")
    os.chdir(base)
    kernel.pivot_root(".", ".old")  # what lay below `base` is visible again, below /.old
    os.chdir("/")
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/.old/{name}"):
            os.symlink(os.readlink(f"/.old/{name}"), f"/{name}")
    for path in paths:
        if not os.path.islink(path):  # /lib may be a link into /usr, which is there already
            _bind(path)
    os.mkdir("/dev")
    for name in _DEVICES:
        _touch(f"/dev/{name}")
        kernel.mount(f"/.old/dev/{name}", f"/dev/{name}", flags=kernel.MS_BIND)
    kernel.detach("/.old")
    os.rmdir("/.old")
    os.makedirs(scratch, exist_ok=True)
    read_only = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
    kernel.mount(None, "/", flags=read_only | kernel.MS_NOSUID | kernel.MS_NODEV)


def mount_scratch(path: str, size_mib: int) -> None:
    """Gives this process a mount namespace in which `path` is empty, writable and its own."""
    kernel.unshare(kernel.CLONE_NEWNS)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("tmpfs", path, kind="tmpfs", flags=flags, options=f"size={size_mib}m,nr_inodes=1024,mode=1777")


def _enter_as_root() -> None:
    ready, told = os.pipe()
    mapped, done = os.pipe()
    me = os.getpid()
    helper = os.fork()
    if helper == 0:  # the map must be written from outside
        os.close(told)  # or the read would not end when the parent fails
        os.close(mapped)
        if os.read(ready, 1) == b"x":
            for kind in ("uid", "gid"):
                _write(f"/proc/{me}/{kind}_map", f"0 0 1\n{NOBODY} {NOBODY} 1\n")
            os.write(done, b"x")
        os._exit(0)
    try:
        os.close(done)
        kernel.unshare(kernel.CLONE_ALL_NEW)
        os.write(told, b"x")
        if os.read(mapped, 1) != b"x":
            raise OSError("the user ids could not be mapped")
    finally:
        for end in (ready, told, mapped):
            os.close(end)
        os.waitpid(helper, 0)


def _bind(path: str) -> None:
    source = f"/.old{path}"
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _touch(path)
    kernel.mount(source, path, flags=kernel.MS_BIND | kernel.MS_REC)
    now = os.statvfs(path).f_flag
    kept = sum(flag for seen, flag in _LOCKED_FLAGS.items() if now & seen)
    read_only = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
    kernel.mount(None, path, flags=read_only | kernel.MS_NOSUID | kernel.MS_NODEV | kept)


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
