"""Starts a sandbox where some system calls are refused, as a container's profile does.

    python container.py NUMBER=ERRNO ...

prints the tier, or "unavailable: " and the reasons.
"""

import ctypes
import struct
import sys

from agentrl_envs.zerotir.sandbox import Sandbox, SandboxUnavailable
from agentrl_envs.zerotir.sandbox.inside import kernel, seccomp

LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def refuse(refused: dict[int, int]) -> None:
    """Installs a filter that answers calls with an errno and allows the rest."""
    program = [(LOAD, 0, 0, 0)]
    for number, error in refused.items():
        program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]
    program.append((RETURN, 0, 0, ALLOW))
    kernel.gain_no_privileges()
    seccomp.install(b"".join(struct.pack("HBBI", *one) for one in program))


if __name__ == "__main__":
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    refuse({int(number): int(error) for number, error in (one.split("=") for one in sys.argv[1:])})
    try:
        with Sandbox(preload=()) as sandbox:
            assert sandbox.run("print(1)").stdout == "1\n"
            print(sandbox.mode)
    except SandboxUnavailable as error:
        print(f"unavailable: {error}")
