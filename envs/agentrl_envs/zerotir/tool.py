"""The Python tool of an episode: counts its calls, keeps its state if asked, and tells what came of them."""

import atexit
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from agentrl.errors import EnvError
from agentrl_envs.zerotir.codecs import ToolCall
from agentrl_envs.zerotir.sandbox import CodeRunner, Limits, Sandbox, Session
from agentrl_envs.zerotir.sandbox.fusion import FusionSandbox
from agentrl_envs.zerotir.tool_text import tell

_opening = threading.Lock()


@dataclass(frozen=True)
class ToolKnobs:
    """What the tool may do."""

    max_calls: int = 2
    """Calls in an episode; 2 by default, as ZeroTIR trains. 0: no tool, one turn."""
    wall_s: float = 5.0
    """Seconds that a call may take."""
    output_tokens: int = 256
    """Longest output that is shown whole, in estimated tokens; of a longer one, head and tail. ZeroTIR's limit."""
    state: Literal["call", "episode"] = "call"
    """Whether variables are kept from call to call. Not by default, as in ZeroTIR."""
    sandbox: str = "auto"
    """`auto`, `ns` or `landlock` on this machine, or the http address of a SandboxFusion server."""

    @property
    def limits(self) -> Limits:
        """Within which each call runs: the sandbox's own, but for the time."""
        cpu_s = math.ceil(self.wall_s)
        return Limits(wall_s=self.wall_s, cpu_s=cpu_s, session_cpu_s=max(Limits.session_cpu_s, 2 * cpu_s))

    def __post_init__(self) -> None:
        if self.max_calls < 0 or self.wall_s <= 0 or self.output_tokens < 1:
            raise EnvError("tool: max_calls is 0 or more, wall_s and output_tokens are positive")
        if self.state not in ("call", "episode"):
            raise EnvError(f"tool.state: {self.state!r} is neither call nor episode")


class PythonTool:
    """Runs the calls of one episode after another."""

    def __init__(self, knobs: ToolKnobs) -> None:
        self._knobs = knobs
        self._limits = knobs.limits
        self._session: Session | None = None
        self.num_calls = 0
        """Calls that have been made in this episode."""
        self.status = ""
        """How the last call ended, as the sandbox calls it; empty where nothing ran."""

    @property
    def calls_left(self) -> int:
        """How many more calls the episode has."""
        return self._knobs.max_calls - self.num_calls

    def call(self, call: ToolCall) -> str:
        """Runs a call and gives the text of its output.

        Raises:
            SandboxDied: the sandbox broke.
            SandboxUnavailable: there is none here.
        """
        self.num_calls += 1
        self.status = ""
        if call.problem:
            return call.problem
        runner = open_sandbox(self._knobs.sandbox, limits=self._limits)
        if self._knobs.state == "episode":
            self._session = self._session or runner.session()
        result = (self._session or runner).run(call.code)
        self.status = result.status
        return tell(result, self._limits, max_tokens=self._knobs.output_tokens)

    def restart(self) -> None:
        """Forgets the episode."""
        self.num_calls, self.status = 0, ""
        if self._session is not None:
            self._session.close()
            self._session = None


def open_sandbox(
    where: str, *, preload: Sequence[str] = ("numpy", "sympy"), limits: Limits | None = None
) -> CodeRunner:
    """Gives the sandbox of this process at `where`, which all environments share; it is closed when the process ends.

    Raises:
        SandboxUnavailable: nothing isolates code here.
        EnvError: `where` is none of auto, ns, landlock or an http address.
    """
    with _opening:  # two threads must not start two
        return _open(where, tuple(preload), limits or Limits())


@cache
def _open(where: str, preload: tuple[str, ...], limits: Limits) -> CodeRunner:
    if where.startswith(("http://", "https://")):
        return FusionSandbox(where, limits=limits)
    if where not in ("auto", "ns", "landlock"):
        raise EnvError(f"tool.sandbox: {where!r} is none of auto, ns, landlock or an http address")
    sandbox = Sandbox(where, preload=preload, limits=limits)
    atexit.register(sandbox.close)
    return sandbox
