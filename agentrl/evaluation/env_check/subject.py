"""The environment that is checked: calls that cannot hang, answers that are looked at, and the clock."""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import gymnasium

from agentrl.env import Actor, TextEnv, text_env
from agentrl.env_calls import in_daemon_thread
from agentrl.errors import EnvError

T = TypeVar("T")
_NEUTRAL = ("yes", "1", "look", "a", "\\boxed{1}")
"""What is said where an environment lists no actions."""


class Lacking(EnvError):
    """What is tried cannot be: the environment need not offer it, or that it does not is told elsewhere."""


@dataclass
class Subject:
    """What is checked, and how thoroughly."""

    make: Callable[[], gymnasium.Env[str, str]]
    """Gives one more instance, with its limit on turns."""
    num_episodes: int = 8
    """Episodes that each player plays."""
    timeout_s: float = 30.0
    """Seconds that any call may take; what takes longer counts as hung."""
    count_tokens: Callable[[str], int] | None = None
    """Length of a text in tokens; None measures characters alone."""

    made: list[gymnasium.Env[str, str]] = field(default_factory=list)
    """Instances that were made."""

    @cached_property
    def env(self) -> TextEnv:
        """An instance that is asked and never played."""
        return text_env(self.stage().env)

    def stage(self) -> "Stage":
        """Gives a new instance to play in."""
        self.made.append(self.make())
        return Stage(self.made[-1], self.timeout_s)

    def close(self) -> None:
        """Closes all instances; one that hangs in it is left behind."""
        while self.made:
            with suppress(EnvError):
                within(self.timeout_s, self.made.pop().close)

    def splits(self) -> list[str]:
        """Gives the names of the splits.

        Raises:
            Lacking: there are none, which the check of splits tells.
        """
        if not self.env.splits:
            raise Lacking("it has no splits, and so no tasks")
        return list(self.env.splits)

    def chosen(self) -> list[str]:
        """Gives the ids of tasks to play: of each split in turn, spread evenly from its first to its last."""
        sets = [self.env.task_set(split) for split in self.splits()]
        each = -(-self.num_episodes // len(sets))
        picked = [[tasks.ids[len(tasks) * number // each] for tasks in sets] for number in range(each)]
        return [id for row in picked for id in row][: self.num_episodes]


@dataclass
class Stage:
    """One instance in use. All methods raise EnvError where it hangs or gives something that is not asked for."""

    env: gymnasium.Env[str, str]
    timeout_s: float
    step_s: list[float] = field(default_factory=list)
    """Seconds that each step took."""

    def reset(self, task_id: str | None, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Starts a task, or one of the seed's choice."""
        options = None if task_id is None else {"task_id": task_id}
        found = within(self.timeout_s, lambda: self.env.reset(seed=seed, options=options))
        _require(isinstance(found, tuple) and len(found) == 2, f"reset gives {_kind(found)}, not a text and an info")
        return _text(found[0]), _info(found[1])

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """Gives observation, reward, whether the episode is over, and info."""

        def timed() -> tuple[Any, float]:
            start = time.perf_counter()
            return self.env.step(action), time.perf_counter() - start

        found, seconds = within(self.timeout_s, timed)
        self.step_s.append(seconds)
        _require(isinstance(found, tuple) and len(found) == 5, f"step gives {_kind(found)}, not five values")
        observation, reward, terminated, truncated, info = found
        is_number = isinstance(reward, int | float) or hasattr(reward, "dtype")
        _require(is_number and math.isfinite(reward), f"step gives the reward {reward!r}, not a finite number")
        _require({bool(terminated), bool(truncated)} <= {terminated, truncated, True, False}, "an end is true or false")
        return _text(observation), float(reward), bool(terminated) or bool(truncated), _info(info)

    def play(self, task_id: str, actor: Actor, *, seed: int = 0) -> "Played":
        """Plays an episode to its end."""
        observation, info = self.reset(task_id, seed=seed)
        texts, total, over = [observation], 0.0, False
        while not over:
            observation, reward, over, info = self.step(actor(observation, info))
            texts.append(observation)
            total += reward
        return Played(task_id, tuple(texts), total, bool(info.get("success", total > 0)))


@dataclass(frozen=True)
class Played:
    """What one episode came to."""

    task_id: str
    texts: tuple[str, ...]
    """Observations, the first of reset."""
    total: float
    success: bool


def any_action(info: dict[str, Any], number: int) -> str:
    """Gives an action that depends on its arguments alone: an admissible one where there are such."""
    known: Sequence[str] = [action for action in info.get("admissible_actions", ()) if action != "help"] or _NEUTRAL
    return known[number * 7919 % len(known)]


def within(timeout_s: float, call: Callable[[], T]) -> T:
    """Gives what a call gives, in a thread that is left behind when it takes too long.

    Raises:
        EnvError: there was no answer in time.
    """
    outcome = in_daemon_thread(call)
    try:
        return outcome.result(timeout_s)
    except NoAnswer as error:
        if outcome.done():
            raise
        raise EnvError(f"hangs: no answer within {timeout_s:g} s") from error


def _text(observation: object) -> str:
    _require(isinstance(observation, str), f"an observation is {_kind(observation)}, not a string")
    return str(observation)


def _info(info: object) -> dict[str, Any]:
    if not isinstance(info, dict):
        raise EnvError(f"an info is {_kind(info)}, not a dictionary")
    return info


def _kind(value: object) -> str:
    return f"{len(value)} values" if isinstance(value, tuple) else type(value).__name__


def _require(is_so: bool, complaint: str) -> None:
    if not is_so:
        raise EnvError(complaint)
