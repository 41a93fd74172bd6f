"""Attacks that a sandbox must stop before it is given anything to run."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from agentrl_envs.zerotir.sandbox.results import Result, SandboxUnavailable

_ATTACKS = r"""
import ctypes, os, signal, socket, sys
got_through = []
def attack(name, act):
    try:
        act()
    except BaseException:
        return
    got_through.append(name)
def checked(result):
    if result < 0:
        raise OSError
libc = ctypes.CDLL(None)
attack("read /etc/passwd", lambda: open("/etc/passwd").read())
attack("read a file of the host", lambda: open(CANARY).read())
attack("list a directory of the host", lambda: os.listdir(os.path.dirname(CANARY)))
attack("write to the host", lambda: open(CANARY + ".written", "w"))
attack("write to the root directory", lambda: open("/written", "w"))
attack("read /proc", lambda: open("/proc/self/status").read())
attack("open an internet socket", lambda: socket.socket())
attack("open a unix socket", lambda: socket.socket(socket.AF_UNIX))
attack("fork", lambda: os.fork() == 0 and os._exit(0))
attack("run a program", lambda: os.execv(sys.executable, [sys.executable, "-c", ""]))
attack("signal the parent", lambda: os.kill(os.getppid() or 1, 0))
attack("make a namespace", lambda: checked(libc.unshare(0x10000000)))
attack("change another's limits", lambda: checked(libc.prlimit64(os.getppid() or 1, 7, None, bytes(16))))
attack("own another's signals", lambda: checked(libc.fcntl(1, 8, os.getppid() or 1)))
attack("take 8 GiB", lambda: bytearray(8 << 30))
print("; ".join(got_through))
"""


def assert_confined(run: Callable[[str], Result]) -> None:
    """Attacks from inside.

    Raises:
        SandboxUnavailable: an attack got through; names it.
    """
    with tempfile.TemporaryDirectory(prefix="agentrl_sandbox_") as folder:
        Path(folder).chmod(0o755)  # what keeps the code out must be the sandbox
        canary = Path(folder) / "secret"
        canary.write_text("secret")
        result = run(f"CANARY = {str(canary)!r}\n{_ATTACKS}")
    if result.status != "ok":
        raise SandboxUnavailable(f"the self-test ended with {result.status}: {result.stderr.strip()[-300:]}")
    if got_through := result.stdout.strip():
        raise SandboxUnavailable(f"the self-test got through: {got_through}")
