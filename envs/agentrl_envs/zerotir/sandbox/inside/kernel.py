"""Linux calls that the standard library lacks, each raising OSError."""

import ctypes
import os
import platform
import struct

IS_X86_64 = platform.machine() == "x86_64"
"""Otherwise the numbers are aarch64's, which have not been run."""
_NUMBERS = {
    "pivot_root": 155 if IS_X86_64 else 41,
    "capset": 126 if IS_X86_64 else 91,
    "seccomp": 317 if IS_X86_64 else 277,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
CLONE_ALL_NEW = (
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 8, 24, 38
_CAP_SETUID = 7
_MAX_CAPABILITIES = 64
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(name: str, *arguments: ctypes.c_void_p | ctypes.c_char_p | ctypes.c_size_t | ctypes.c_int | None) -> int:
    """Makes a system call by name and gives its result."""
    return _checked(name, _libc.syscall(ctypes.c_long(_NUMBERS[name]), *arguments))


def unshare(flags: int) -> None:
    """Moves this process into new namespaces."""
    _checked("unshare", _libc.unshare(ctypes.c_int(flags)))


def mount(source: str | None, target: str, *, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    """Mounts a file system, or changes a mount."""
    arguments = [os.fsencode(text) if text else None for text in (source, target, kind)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options) if options else None)
    _checked(f"mount {source or ''} on {target}", result)


def detach(target: str) -> None:
    """Unmounts a tree, at once and whole."""
    _checked(f"umount {target}", _libc.umount2(os.fsencode(target), ctypes.c_int(_MNT_DETACH)))


def pivot_root(new: str, old: str) -> None:
    """Makes `new` the root directory and puts the old one at `old`."""
    syscall("pivot_root", ctypes.c_char_p(os.fsencode(new)), ctypes.c_char_p(os.fsencode(old)))


def die_with_parent() -> None:
    """Has the kernel kill this process when its parent ends. Changing the user id undoes it."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def hide_memory() -> None:
    """Forbids core dumps, and reading or tracing this process."""
    _prctl(_PR_SET_DUMPABLE, 0)


def gain_no_privileges() -> None:
    """Makes setuid programs powerless from here on; seccomp and Landlock ask for it."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def bound_capabilities() -> None:
    """Makes sure that no program that is run later has a capability."""
    for capability in range(_MAX_CAPABILITIES):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # this kernel has fewer, or a plain user may not; there is then nothing to drop
            break


def become(uid: int, *, file_uid: int) -> None:
    """Makes this process of one thread another user's, and has it open files as `file_uid`.

    Of root's capabilities one is left, by which that was done; `drop_capabilities` ends it.
    """
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setresuid(uid, uid, uid)  # from now on files are opened as `uid` too
    _set_capabilities(1 << _CAP_SETUID)
    _libc.setfsuid(ctypes.c_uint(file_uid))
    if _libc.setfsuid(ctypes.c_uint(-1)) != file_uid:  # it gives what was set before, and no error
        raise PermissionError(f"files cannot be opened as user {file_uid}")


def drop_capabilities() -> None:
    """Gives up every capability."""
    _set_capabilities(0)


def _set_capabilities(kept: int) -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("=6I", kept, kept, 0, 0, 0, 0)  # effective, permitted, inheritable; the same of those from 32 on
    syscall("capset", ctypes.c_char_p(header), ctypes.c_char_p(sets))


def _prctl(option: int, value: int) -> None:
    arguments = [ctypes.c_ulong(number) for number in (option, value, 0, 0, 0)]
    _checked(f"prctl({option})", _libc.prctl(*arguments))


def _checked(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
