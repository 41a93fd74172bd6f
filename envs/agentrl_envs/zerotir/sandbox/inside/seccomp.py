"""The system calls that model-written code may make: about 150, everything else answers EPERM.

A filter is a program for the kernel's classic BPF machine. It reads `struct seccomp_data`: the call's number at byte 0,
the architecture at 4, the six arguments from 16 on, each as a low and a high word.
"""

import ctypes
import errno
import struct

from . import kernel

Instruction = tuple[int, int, int, int]

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _ERRNO | errno.EPERM
_ARCHITECTURE = 0xC000003E if kernel.IS_X86_64 else 0xC00000B7
_FIRST_X32_NUMBER = 0x40000000
_CLONE_THREAD = 0x10000
_SET_MODE_FILTER = 1
_LONGEST_JUMP = 255
_ANY_PID = 0x5EEDF00D
"""Stands for a worker's own process id; no other number of a filter looks like it."""
_COLUMN = 0 if kernel.IS_X86_64 else 1


def _table(text: str) -> dict[str, int | None]:
    """Reads "name x86-64 aarch64, ..." and gives this machine's number of each call; None: it does not exist here."""
    rows = (entry.split() for entry in text.split(","))
    return {name: None if number == "-" else int(number) for name, *numbers in rows for number in [numbers[_COLUMN]]}


_NUMBERS = _table(
    """
    read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, open 2 -, openat 257 56,
    close 3 57, close_range 436 436, lseek 8 62, stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79,
    statx 332 291, access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78,
    getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, dup 32 23, dup2 33 -, dup3 292 24, pipe 22 -,
    pipe2 293 59, poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -,
    epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22, eventfd2 290 19,
    timerfd_create 283 85, timerfd_settime 286 86, timerfd_gettime 287 87, socketpair 53 199, sendto 44 206,
    recvfrom 45 207, shutdown 48 210, getsockopt 55 209, getsockname 51 204, getpeername 52 205, mmap 9 222,
    munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, brk 12 214, mincore 27 232, msync 26 227,
    membarrier 324 283, fsync 74 82, fdatasync 75 83, ftruncate 77 46, flock 73 32, statfs 137 43,
    fstatfs 138 44, fadvise64 221 223, sendfile 40 71, rt_sigaction 13 134, rt_sigprocmask 14 135,
    rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133,
    sigaltstack 131 132, pause 34 -, alarm 37 -, getitimer 36 102, setitimer 38 103, nanosleep 35 101,
    clock_nanosleep 230 115, clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -,
    times 100 153, restart_syscall 219 128, futex 202 98, futex_waitv 449 449, set_robust_list 273 99,
    get_robust_list 274 100, set_tid_address 218 96, rseq 334 293, arch_prctl 158 -, gettid 186 178,
    getpid 39 172, getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
    getpgrp 111 -, getpgid 121 155, getsid 124 156, getresuid 118 148, getresgid 120 150, getgroups 115 158,
    umask 95 166, getrlimit 97 163, getrusage 98 165, sysinfo 99 179, uname 63 160, getrandom 318 278,
    sched_yield 24 124, sched_getaffinity 204 123, getcpu 309 168, sched_getparam 143 121,
    sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
    getpriority 140 141, exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, capget 125 90
    """
)
"""Always allowed."""

_CHANGES_FILES = _table(
    """
    mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38,
    renameat2 316 276, symlink 88 -, symlinkat 266 36, link 86 -, linkat 265 37, fallocate 285 47,
    copy_file_range 326 285
    """
)
"""Allowed only where the worker has a directory of its own."""

_CHECKED = _table(
    """
    clone 56 220, clone3 435 435, kill 62 129, tgkill 234 131, prlimit64 302 261, ioctl 16 29, prctl 157 167,
    fcntl 72 25
    """
)
"""Allowed with some arguments only."""

_IOCTL_REQUESTS = (0x5401, 0x541B, 0x5421, 0x5451, 0x5450, 0x5413)
"""TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TIOCGWINSZ."""
_PRCTL_OPTIONS = (15, 16, 3, 0x53564D41)
"""PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_SET_VMA (malloc names its arenas)."""
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
"""F_DUPFD to F_SETLKW, locks of open files, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Not F_SETOWN and F_SETSIG, by which the
kernel sends any signal to any process of the same user, nor F_SETPIPE_SZ, which is memory beyond the limit."""


def worker_program(*, may_change_files: bool) -> bytes:
    """Gives the filter of workers, to be completed by `for_process`.

    Args:
        may_change_files: whether they may make, rename and delete files.
    """
    program = [*_load(_AT_ARCHITECTURE), (_JUMP_EQUAL, 1, 0, _ARCHITECTURE), _give(_KILL_PROCESS), *_load(_AT_NUMBER)]
    if kernel.IS_X86_64:
        program += [_jump(_JUMP_AT_LEAST, _FIRST_X32_NUMBER, no=1), _give(_KILL_PROCESS)]
    allowed = _NUMBERS | (_CHANGES_FILES if may_change_files else {})
    for name, body in _checks(_ANY_PID).items():
        program += [_jump(_JUMP_EQUAL, _number(name), no=len(body)), *body]
    numbers = [number for number in allowed.values() if number is not None]
    assert len(numbers) <= _LONGEST_JUMP
    for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
        program.append((_JUMP_EQUAL, left, 0, number))  # over the rest and the refusal
    return _assembled([*program, _give(_REFUSE), _give(_ALLOW)])


def for_process(program: bytes, pid: int) -> bytes:
    """Gives the filter of one worker, which may signal itself and read its own limits only."""
    return program.replace(struct.pack("I", _ANY_PID), struct.pack("I", pid))


def install(program: bytes) -> None:
    """Puts this thread under a filter, for good. It must have given up new privileges before."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    kernel.syscall("seccomp", ctypes.c_int(_SET_MODE_FILTER), ctypes.c_int(0), ctypes.c_char_p(header))


def _checks(own_pid: int) -> dict[str, list[Instruction]]:
    """Gives the code that decides each call whose arguments matter; it ends in a return on every way."""
    any_namespace = kernel.CLONE_ALL_NEW
    threads_only = [
        *_load(_AT_ARGUMENTS),
        (_JUMP_ANY_BIT, 0, 2, _CLONE_THREAD),
        (_JUMP_ANY_BIT, 1, 0, any_namespace),
        _give(_ALLOW),
        _give(_REFUSE),
    ]
    return {
        "clone": threads_only,
        "clone3": [_give(_ERRNO | errno.ENOSYS)],  # its flags are out of a filter's reach; glibc then calls clone
        "kill": _one_of(0, (own_pid,), _REFUSE),
        "tgkill": _one_of(0, (own_pid,), _REFUSE),
        "prlimit64": _one_of(0, (0, own_pid), _REFUSE),
        "ioctl": _one_of(1, _IOCTL_REQUESTS, _ERRNO | errno.ENOTTY),
        "prctl": _one_of(0, _PRCTL_OPTIONS, _REFUSE),
        "fcntl": _one_of(1, _FCNTL_COMMANDS, _REFUSE),
    }


def _one_of(argument: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    """Allows a call if the low word of an argument, which is all the kernel reads of these, is one of the values."""
    body = _load(_AT_ARGUMENTS + 8 * argument)
    for value in values:
        body += [_jump(_JUMP_EQUAL, value, no=1), _give(_ALLOW)]
    return [*body, _give(otherwise)]


def _number(name: str) -> int:
    number = _CHECKED[name]
    assert number is not None, f"{name} exists on every architecture"
    return number


def _load(offset: int) -> list[Instruction]:
    return [(_LOAD, 0, 0, offset)]


def _jump(test: int, value: int, *, no: int) -> Instruction:
    """Goes on if the test holds, and skips `no` instructions otherwise."""
    return test, 0, no, value


def _give(verdict: int) -> Instruction:
    return _RETURN, 0, 0, verdict


def _assembled(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
