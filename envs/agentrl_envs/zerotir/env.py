"""agentrl/ZeroTIR-v0: problems that a policy solves by writing Python."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from agentrl.env import Actor, CutAction, SplitRole, TextEnv, planned
from agentrl.errors import EnvError
from agentrl.tasks import TaskSet
from agentrl_envs.recorded import recorded
from agentrl_envs.zerotir.arithmetic import Arithmetic, ArithmeticKnobs, Calculator
from agentrl_envs.zerotir.boxes import boxed_answer
from agentrl_envs.zerotir.codecs import ToolCall, codec
from agentrl_envs.zerotir.gym_sets import GymKnobs, GymProblems
from agentrl_envs.zerotir.knights import KnightsAndKnaves, KnightsKnobs
from agentrl_envs.zerotir.math_sets import MathKnobs, MathSets, problem_fingerprint
from agentrl_envs.zerotir.problems import ROLES, Problem, ProblemSource
from agentrl_envs.zerotir.tool import PythonTool, ToolKnobs
from agentrl_envs.zerotir.tool_text import NO_CALLS_LEFT

KnobsT = TypeVar("KnobsT")

_NOTHING_TO_REPORT: Mapping[str, Any] = {"tool_calls": 0, "tool_failed": False, "timed_out": False, "void_turn": False}


class ZeroTIR(TextEnv):
    r"""Problems with a Python tool. A turn either calls the tool or ends the episode; a right \boxed{answer} earns 1.

    The text that a policy writes after a call, in the same turn, is not read. A call beyond the limit is refused once;
    a second one ends the episode. Only what the policy wrote is graded, never an output of the tool. An answer that the
    token limit cut off is none, even where its box is complete; a complete call in it is made.
    """

    reports = tuple(_NOTHING_TO_REPORT)
    """Calls that were made, and turns whose call failed, took too long, or in which neither a call nor a box stands."""

    def __init__(
        self,
        *,
        source: Literal["arithmetic", "knights", "math", "gym"] = "arithmetic",
        protocol: str = "zerotir",
        tool: Mapping[str, Any] | None = None,
        **knobs: Any,
    ) -> None:
        """Makes an environment.

        Args:
            source: where problems come from; `arithmetic` and `knights` need no data.
            protocol: how the tool is called: `zerotir` (fenced code), `retool` (tags) or `hermes` (JSON).
            tool: what the tool may do: `max_calls`, `wall_s`, `output_tokens`, `state`, `sandbox`; see `ToolKnobs`.
            knobs: of the source.
        """
        super().__init__()
        self.splits: Mapping[str, SplitRole] = ROLES
        self.source = _source(source, knobs)
        """Where the problems come from."""
        self._recorded_as = "" if knobs.keys() - {"data"} else source
        self.tool_knobs = _filled(ToolKnobs(), tool or {}, "tool")
        """What the tool may do."""
        self._codec = codec(protocol)
        self._tool = PythonTool(self.tool_knobs)
        self._problem: Problem | None = None
        self._refused = False

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Poses the problem that `options["task_id"]` names, or a training problem of the seed's choice."""
        super().reset(seed=seed)
        task_id = self.asked_task(options)
        self._problem = self.source.problem(task_id)
        self._tool.restart()
        self._refused = False
        return self._problem.question, self._info(self._problem)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Runs the call in a turn, or grades the answer of a turn without one."""
        assert self._problem is not None, "reset comes before step"
        call = self._codec.find(action) if self.tool_knobs.max_calls else None
        if call is None:
            box = boxed_answer(action)
            answer = None if isinstance(action, CutAction) else box
            return self._grade(self._problem, answer, void_turn=box is None)
        if self._tool.calls_left:
            return self._run(self._problem, call)
        if self._refused:
            return self._grade(self._problem, None)
        self._refused = True
        flags = {"success": False, "inadmissible": True}
        return self._codec.output(NO_CALLS_LEFT), 0.0, False, False, self._info(self._problem) | flags

    def task_set(self, split: str) -> TaskSet:
        """Gives the problems of a split."""
        self.check_split(split)
        return self.source.task_set(split)

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        """Gives a player of sums; other problems have none."""
        if not isinstance(self.source, Arithmetic):
            return super().expert(seed, noise=noise)
        return Calculator(seed, noise, codec=self._codec)

    def oracle(self, seed: int) -> Actor:
        """Gives a player that knows the answer: what it cannot win, no answer wins."""
        del seed
        return planned(lambda info: [f"\\boxed{{{self.source.problem(info['task_id']).answer}}}"])

    def fingerprint(self, task_id: str) -> str:
        """Gives the hash of the problem's letters, digits and signs: the same however it is set, in whatever set."""
        return problem_fingerprint(self.source.problem(task_id).question)

    @property
    def recorded(self) -> Mapping[str, str]:
        """Hashes of the manifests of sums, of knights and knaves and of the math sets, with their default knobs."""
        return recorded(f"zerotir_{self._recorded_as}") if self._recorded_as else {}

    def close(self) -> None:
        """Ends the interpreter of an unfinished episode."""
        self._tool.restart()

    def _run(self, problem: Problem, call: ToolCall) -> tuple[str, float, bool, bool, dict[str, Any]]:
        output = self._tool.call(call)
        flags = {
            "success": False,
            "inadmissible": bool(call.problem),
            "tool_calls": 1,
            "tool_failed": self._tool.status != "ok",
            "timed_out": self._tool.status in ("timeout", "cpu_limit"),
        }
        return self._codec.output(output), 0.0, False, False, self._info(problem) | flags

    def _grade(
        self, problem: Problem, answer: str | None, *, void_turn: bool = False
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        right = answer is not None and self.source.is_right(problem, answer)
        flags = {"success": right, "inadmissible": answer is None, "answer": answer, "void_turn": void_turn}
        info = self._info(problem) | flags
        self._tool.restart()
        self._problem = None  # a step beyond the end must not be paid again
        return "", float(right), True, False, info

    def _info(self, problem: Problem) -> dict[str, Any]:
        return {
            "task_id": problem.id,
            "task": problem.question,
            "task_type": problem.kind,
            "num_calls": self._tool.num_calls,
            **_NOTHING_TO_REPORT,
        }


def _source(name: str, knobs: Mapping[str, Any]) -> ProblemSource:
    match name:
        case "arithmetic":
            return Arithmetic(_filled(ArithmeticKnobs(), knobs, "source arithmetic"))
        case "knights":
            return KnightsAndKnaves(_filled(KnightsKnobs(), knobs, "source knights"))
        case "math":
            return MathSets(_filled(MathKnobs(), knobs, "source math"))
        case "gym":
            return GymProblems(_filled(GymKnobs(), knobs, "source gym"))
        case _:
            raise EnvError(f"source: {name!r} is none of arithmetic, knights, math and gym")


def _filled(defaults: KnobsT, given: Mapping[str, Any], what: str) -> KnobsT:
    """Gives knobs with some of them set, as a configuration file gives them: lists for tuples."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    known = list(getattr(defaults, "__dataclass_fields__", ()))
    if unknown := set(values) - set(known):
        raise EnvError(f"{what}: no knob {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return replace(defaults, **values)  # pyright: ignore[reportArgumentType, reportCallIssue]
