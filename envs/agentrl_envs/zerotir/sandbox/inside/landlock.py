"""Landlock: what a process that may not make namespaces can still give up."""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from . import kernel

_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Every right over files that a version knows: those that no rule grants are denied."""
_TCP_RIGHTS, _FROM_VERSION_TCP = 0b11, 4
_SCOPES, _FROM_VERSION_SCOPES = 0b11, 6
"""Abstract sockets and signals reach this domain only."""


def version() -> int:
    """Gives the kernel's Landlock version, 0 where there is none."""
    try:
        return kernel.syscall("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_int(_VERSION_FLAG))
    except OSError:
        return 0


def confine(readable: Sequence[str], *, writable: Sequence[str]) -> None:
    """Leaves this process no file but what is below `readable` and the `writable` ones, no TCP, no outside signal.

    Raises:
        OSError: the kernel has no Landlock, or refuses.
    """
    known = version()
    if known < 1:
        raise OSError(errno.ENOSYS, "Landlock is not available")
    words = [_FILE_RIGHTS[min(known, max(_FILE_RIGHTS))]]
    words += [_TCP_RIGHTS] if known >= _FROM_VERSION_TCP else []
    words += [_SCOPES] if known >= _FROM_VERSION_SCOPES else []
    rules = struct.pack(f"{len(words)}Q", *words)
    arguments = (ctypes.c_char_p(rules), ctypes.c_size_t(len(rules)), ctypes.c_int(0))
    ruleset = kernel.syscall("landlock_create_ruleset", *arguments)
    for path in filter(os.path.exists, readable):
        _allow(ruleset, path, _EXECUTE | _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0))
    for path in writable:
        _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    kernel.syscall("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_int(0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = ctypes.c_char_p(struct.pack("=Qi", rights, opened))
    try:
        kernel.syscall(
            "landlock_add_rule", ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_int(0)
        )
    finally:
        os.close(opened)
