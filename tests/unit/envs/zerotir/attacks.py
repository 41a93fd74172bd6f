"""What hostile code tries. Every snippet prints ESCAPED if it succeeds; SECRET_FILE is a file of the host.

    python attacks.py MODE PYTHON SECRET [UID]

runs them all in one sandbox, as another user if asked, and prints as JSON how many there were and which succeeded.
"""

import json
import os
import sys
from dataclasses import dataclass

from agentrl_envs.zerotir.sandbox import Limits, Result, Sandbox


@dataclass(frozen=True)
class Attack:
    """A snippet and how it may end."""

    code: str
    ends: tuple[str, ...] = ("ok", "error")
    """The statuses that are no success; a busy machine may add `timeout`."""


def tried(act: str, setup: str = "") -> Attack:
    """An act that must raise."""
    code = f"import ctypes, os, socket, sys, signal\nlibc = ctypes.CDLL(None, use_errno=True)\n{setup}\ntry:\n"
    code += "".join(f"    {line}\n" for line in act.splitlines())
    return Attack(f"{code}    print('ESCAPED')\nexcept Exception as error:\n    print(type(error).__name__)\n")


def system_call(*numbers: object) -> Attack:
    """A system call, by its number on x86-64, that must fail."""
    return tried(f"if libc.syscall({', '.join(map(str, numbers))}) < 0: raise OSError(ctypes.get_errno())")


ATTACKS = {
    "reads a file of the host": tried("open(SECRET_FILE).read()"),
    "lists a folder of the host": tried("os.listdir(os.path.dirname(SECRET_FILE))"),
    "reads the passwords' file": tried("open('/etc/passwd').read()"),
    "reads the shadow file": tried("open('/etc/shadow').read()"),
    "reads a home": tried("if len(os.listdir('/root')) < 2: raise OSError"),  # the way to the interpreter may be there
    "reads through a symbolic link": tried("os.symlink(SECRET_FILE, 'link'); open('link').read()"),
    "reads through a hard link": tried("os.link(SECRET_FILE, 'link'); open('link').read()"),
    "reads by climbing up": tried("open('../' * 30 + SECRET_FILE).read()"),
    "finds a secret in the environment": tried("if 'SECRET' not in str(os.environ): raise OSError"),
    "reads the environment of a parent": tried("open(f'/proc/{os.getppid()}/environ', 'rb').read()"),
    "reads /proc": tried("if not os.listdir('/proc'): raise OSError"),
    "reads its memory map": tried("open('/proc/self/maps').read()"),
    "reads another's memory": tried("open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    "reads /sys": tried("if not os.listdir('/sys'): raise OSError"),
    "writes beside a file of the host": tried("open(SECRET_FILE + '.new', 'w').write('x')"),
    "overwrites a file of the host": tried("open(SECRET_FILE, 'w').write('x')"),
    "deletes a file of the host": tried("os.unlink(SECRET_FILE)"),
    "writes to the interpreter": tried("open(os.__file__, 'a').write('x')"),
    "writes to the root": tried("open('/written', 'w').write('x')"),
    "changes permissions": tried("os.chmod(os.__file__, 0o777)"),
    "sets the time of a file": tried("os.utime(os.__file__, (0, 0))"),
    "opens an internet socket": tried("socket.socket()"),
    "opens an internet socket of version 6": tried("socket.socket(socket.AF_INET6)"),
    "opens a raw socket": tried("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    "opens a netlink socket": tried("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    "connects to an abstract socket": tried("socket.socket(socket.AF_UNIX).connect('\\0agentrl-test')"),
    "resolves a name": tried("socket.getaddrinfo('example.com', 80)"),
    "forks": tried("if os.fork() == 0: os._exit(0)"),
    "forks by vfork": system_call(58),
    "forks by clone3": system_call(435, "bytes(88)", 88),
    "starts a subprocess": tried("__import__('subprocess').run(['/bin/true'])"),
    "starts by posix_spawn": tried("os.posix_spawn(sys.executable, [sys.executable, '-c', ''], {})"),
    "runs a program": tried("os.execv(sys.executable, [sys.executable, '-c', 'print(\"ESCAPED\")'])"),
    "runs a program by descriptor": system_call(322, 3, "b''", 0, 0, 0x1000),
    "kills its parent": tried("os.kill(os.getppid() or 1, signal.SIGKILL)"),
    "kills the first process": tried("os.kill(1, signal.SIGKILL)"),
    "kills everything": tried("os.kill(-1, signal.SIGKILL)"),
    "kills its group": tried("os.killpg(0, signal.SIGKILL)"),
    "signals through a pidfd": tried("signal.pidfd_send_signal(os.pidfd_open(os.getppid() or 1), 0)"),
    "queues a signal": system_call(129, 1, 9, "bytes(128)"),
    "owns another's signals": tried("import fcntl; fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid() or 1)"),
    "sets the signal of a descriptor": tried("import fcntl; fcntl.fcntl(1, 10, 9)"),
    "owns signals by ioctl": tried("import fcntl; fcntl.ioctl(1, 0x8901, (1).to_bytes(4, 'little'))"),
    "types into the terminal": tried("import fcntl; fcntl.ioctl(0, 0x5412, b'x')"),
    "traces its parent": system_call(101, 16, 1, 0, 0),
    "asks to be traced": system_call(101, 0, 0, 0, 0),
    "reads another's memory by call": system_call(310, 1, "bytes(16)", 1, "bytes(16)", 1, 0),
    "makes a user namespace": tried("if libc.unshare(0x10000000) < 0: raise OSError"),
    "makes a namespace by clone": system_call(56, "0x10000000 | 17", 0, 0, 0, 0),
    "enters a namespace": system_call(308, 0, 0),
    "mounts": tried("if libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) < 0: raise OSError"),
    "changes the root": tried("os.chroot('/')"),
    "becomes root": tried("os.setuid(0)"),
    "raises a limit": tried("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))"),
    "changes another's limit": tried("import resource; resource.prlimit(os.getppid() or 1, resource.RLIMIT_CPU)"),
    "raises its priority": tried("os.nice(-5)"),
    "pins another process": tried("os.sched_setaffinity(1, {0})"),
    "makes a file in memory": tried("os.memfd_create('x')"),
    "takes shared memory": tried("from multiprocessing.shared_memory import *; SharedMemory(create=True, size=64)"),
    "takes shared memory of system V": system_call(29, 0, 4096, 0o1600),
    "makes a message queue": tried("if libc.mq_open(b'/x', 0o102, 0o600, None) < 0: raise OSError"),
    "loads a BPF program": system_call(321, 0, "bytes(128)", 128),
    "opens an io_uring": system_call(425, 8, "bytes(120)"),
    "handles page faults": system_call(323, 0),
    "adds a key": system_call(248, "b'user'", "b'x'", "b'y'", 1, -3),
    "watches performance": system_call(298, "bytes(128)", 0, -1, -1, 0),
    "watches files": system_call(253),
    "loads a kernel module": system_call(175, 0, 0, "b''"),
    "reboots": system_call(169, 0xFEE1DEAD, 672274793, 0x89ABCDEF, 0),
    "reads the kernel's log": system_call(103, 3, "bytes(99)", 99),
    "opens a terminal": tried("os.openpty()"),
    "opens a file by handle": system_call(304, -100, "bytes(16)", 0),
    "uses the supervisor's descriptors": tried(
        "found = [d for d in range(3, 4096) if libc.fcntl(d, 1) >= 0]\nif not found: raise OSError"
    ),
    "uses a 32-bit system call": Attack(
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\n"
        "m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n"  # mov eax, getpid; int 0x80; ret
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nprint('ESCAPED')",
        ("killed",),
    ),
    "uses a system call of the x32 kind": Attack(
        "import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 39)\nprint('ESCAPED')", ("killed",)
    ),
    "floods stdout": Attack("while True: print('x' * 10000)", ("output_limit",)),
    "floods stderr": Attack("import os\nwhile True: os.write(2, b'x' * 10000)", ("output_limit",)),
    "floods memory": Attack(
        "x = []\ntry:\n    while True: x.append(b'x' * (1 << 20))\n"
        "except MemoryError: print(len(x) > 1000 and 'ESCAPED')"
    ),
    "floods memory with one object": tried("bytearray(4 << 30)"),
    "floods with maps": Attack(
        "import mmap\nx = []\ntry:\n    while True: x.append(mmap.mmap(-1, 1 << 24))\n"
        "except OSError: print(len(x) > 100 and 'ESCAPED')"
    ),
    "floods with threads": Attack(
        "import threading, time\nthreading.stack_size(1 << 15)\nn = 0\ntry:\n    while n < 5000:\n"
        "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\n    print('ESCAPED')\n"
        "except RuntimeError: print('stopped')",
        ("ok", "killed", "timeout"),
    ),
    "floods the disk": Attack(
        "import os\ntry:\n    for i in range(64):\n        with open(f'f{i}', 'wb') as f: f.write(bytes(1 << 20))\n"
        "    print('ESCAPED')\nexcept OSError: print('stopped')"
    ),
    "floods with files": Attack(
        "try:\n    for i in range(5000): open(f'f{i}', 'w').close()\n    print('ESCAPED')\n"
        "except OSError: print('stopped')"
    ),
    "floods with descriptors": Attack(
        "import os\ntry:\n    for i in range(500): os.pipe()\n    print('ESCAPED')\nexcept OSError: print('stopped')"
    ),
    "grows a pipe": tried("import fcntl; fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)"),
    "sleeps": Attack("import time\ntime.sleep(60)", ("timeout",)),
    "loops": Attack("while True: pass", ("timeout", "cpu_limit")),
    "ignores every signal": Attack(
        "import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "while True:\n    try: time.sleep(60)\n    except BaseException: pass",
        ("timeout",),
    ),
    "ignores the CPU limit": Attack(
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", ("timeout", "cpu_limit")
    ),
    "catches every exception": Attack(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass", ("timeout", "cpu_limit")
    ),
    "holds the interpreter in a power": Attack("9 ** 9 ** 9", ("timeout", "cpu_limit", "error")),
    "holds the interpreter in a regular expression": Attack(
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", ("timeout", "cpu_limit")
    ),
    "leaves a thread behind": Attack("import threading\nthreading.Timer(60, print).start()", ("timeout",)),
    "overflows the stack": Attack(
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f([x])\nf(0)\nprint('ESCAPED')",
        ("killed", "error", "cpu_limit"),
    ),
    "crashes": Attack("import ctypes\nctypes.string_at(0)\nprint('ESCAPED')", ("killed",)),
    "exits with the status of a broken worker": Attack("import os\nos._exit(125)\nprint('ESCAPED')", ("error",)),
    "speaks for the worker": tried("os.write(3, b'x' * 99)"),
    "raises what cannot be shown": Attack(
        "class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E", ("error",)
    ),
}  # fmt: skip


def run(sandbox: Sandbox, name: str, secret: str) -> Result:
    """Runs an attack."""
    attack = ATTACKS[name]
    return sandbox.run(attack.code.replace("SECRET_FILE", repr(secret)), wall_s=1.0)


def succeeded(name: str, result: Result) -> bool:
    """Whether an attack did what it should not."""
    return "ESCAPED" in result.stdout or result.status not in (*ATTACKS[name].ends, "timeout")


def main(mode: str, python: str, secret: str, uid: str | None = None) -> None:
    if uid:
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    os.environ["API_KEY"] = "SECRET"
    with Sandbox(mode, python=python, preload=(), limits=Limits(cpu_s=1)) as sandbox:  # pyright: ignore[reportArgumentType]
        found = {name: run(sandbox, name, secret) for name in ATTACKS}
    escaped = [name for name, result in found.items() if succeeded(name, result)]
    print(json.dumps({"num": len(found), "escaped": escaped}))


if __name__ == "__main__":
    main(*sys.argv[1:])
