import errno
import subprocess
import sys
from pathlib import Path

import pytest

from agentrl_envs.zerotir.sandbox.inside import kernel, landlock

pytestmark = [
    pytest.mark.skipif(not kernel.IS_X86_64, reason="the numbers of the refused calls are those of x86-64"),
    pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux'"),
]
UNSHARE, SECCOMP, PIDFD_OPEN, LANDLOCK = 272, 317, 434, 444
NO_NAMESPACES = {UNSHARE: errno.EPERM}
NO_LANDLOCK = {LANDLOCK: errno.ENOSYS}
needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")


def start_in(refused: dict[int, int]) -> str:
    """What a sandbox says of a machine that refuses these calls."""
    arguments = [f"{number}={error}" for number, error in refused.items()]
    script = Path(__file__).with_name("container.py")
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_landlock
def test_a_container_without_namespaces_gets_landlock() -> None:
    assert start_in(NO_NAMESPACES) == "landlock"


def test_a_container_with_neither_gets_no_sandbox_and_reads_why() -> None:
    told = start_in(NO_NAMESPACES | NO_LANDLOCK)
    assert told.startswith("unavailable: ")
    assert "ns: PermissionError: [Errno 1] unshare" in told
    assert "landlock: OSError: [Errno 38] Landlock is not available" in told


def test_a_kernel_without_seccomp_gets_no_sandbox() -> None:
    told = start_in({SECCOMP: errno.ENOSYS})
    assert told.startswith("unavailable: ")
    assert told.count("a worker could not be confined: OSError: [Errno 38] seccomp") == 2


def test_a_kernel_without_process_descriptors_gets_no_sandbox() -> None:
    assert start_in({PIDFD_OPEN: errno.ENOSYS}).startswith("unavailable: ")


def test_a_kernel_without_landlock_gets_namespaces() -> None:
    assert start_in(NO_LANDLOCK) in ("ns", "unavailable: ")
