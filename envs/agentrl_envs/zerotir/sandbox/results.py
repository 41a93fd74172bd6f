"""What running a piece of code gives, within which limits, and what can go wrong with the sandbox itself."""

from dataclasses import dataclass
from typing import Literal, Protocol, Self

from agentrl.errors import AgentRLError, EnvError

Status = Literal["ok", "error", "timeout", "cpu_limit", "output_limit", "killed"]


class SandboxUnavailable(AgentRLError):
    """Nothing isolates model-written code on this machine, so it is not run; the message gives the reasons."""


class SandboxDied(EnvError):
    """The sandbox broke, not the code in it: the episode says nothing about the policy and is not trained on."""


@dataclass(frozen=True)
class Limits:
    """What one piece of code may use."""

    wall_s: float = 5.0
    """Seconds of the clock."""
    cpu_s: int = 5
    """Seconds of CPU time, all threads together."""
    memory_mib: int = 512
    """Address space beyond what the interpreter and its libraries take."""
    output_bytes: int = 64 << 10
    """Of stdout and of stderr; beyond it the code is stopped."""
    session_cpu_s: int = 60
    """Seconds of CPU time of all calls of a session."""
    scratch_mib: int = 16
    """Size of the private directory, where there is one, and of any file in it."""
    open_files: int = 64
    """File descriptors."""
    threads: int = 256
    """Threads of all code that runs at a time; under `landlock`, of all else of a plain user as well."""


@dataclass(frozen=True)
class Result:
    """What came of one piece of code."""

    status: Status
    """`ok`; `error` (an exception or a nonzero exit); which limit stopped it; or `killed` by a signal."""
    stdout: str
    stderr: str
    wall_ms: float
    """Milliseconds from sending the code to having its result."""
    signal: int | None = None
    """The signal that ended it."""


class Session(Protocol):
    """An interpreter that keeps its variables from call to call."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Runs code after what was run before; see `CodeRunner.run`."""
        ...

    def close(self) -> None:
        """Ends the interpreter."""
        ...


class CodeRunner(Protocol):
    """Runs untrusted Python; safe to share between threads."""

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Runs code in an interpreter of its own.

        Args:
            code: Python source.
            wall_s: limit in seconds of the clock; None takes the default.

        Raises:
            SandboxDied: the sandbox broke, more than once.
        """
        ...

    def session(self) -> Session:
        """Starts an interpreter that keeps its state."""
        ...

    def close(self) -> None:
        """Ends everything that runs."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...
