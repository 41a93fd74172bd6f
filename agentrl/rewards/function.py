"""A function of the user's as a source of rewards.

It is called as `rewards(trajectories: list[Trajectory])` and returns a number for each episode, in their order; with
reward.per_turn a list of numbers for each, one a turn.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentrl.errors import AgentRLError, ConfigError
from agentrl.rewards._base import RawReward, paid_turns
from agentrl.trajectory import Trajectory


@dataclass(frozen=True)
class RewardFunction:
    """Asks `function`, which `path` names, about the episodes of a step that this process plays."""

    path: str
    function: Callable[[list[Trajectory]], Any]
    per_turn: bool = False

    @classmethod
    def load(cls, path: str, *, per_turn: bool) -> "RewardFunction":
        """Imports `package.module:function`.

        Raises:
            ConfigError: there is no such module or function.
        """
        module, _, name = path.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"reward.path: cannot import {path}: {error}; write package.module:function") from error
        if not callable(function):
            raise ConfigError(f"reward.path: {path} is {type(function).__name__}; name a function of the trajectories")
        return cls(path, function, per_turn)

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[dict[int, RawReward]]:
        """Gives what the function returns.

        Raises:
            AgentRLError: it raised, or returned something else than a number for each.
        """
        try:
            returned = self.function(list(trajectories))
        except AgentRLError:
            raise
        except Exception as error:  # the boundary to code that is not ours
            raise AgentRLError(f"reward.path: {self.path} raised {type(error).__name__}: {error}") from error
        found: list[dict[int, RawReward]] = []
        for one, value in zip(trajectories, self._list(returned, len(trajectories), "episodes"), strict=True):
            turns = paid_turns(one, per_turn=self.per_turn)
            numbers = self._list(value, len(turns), f"turns of task {one.task_id!r}") if self.per_turn else [value]
            found.append({turn: self._raw(number) for turn, number in zip(turns, numbers, strict=True)})
        return found

    def _list(self, returned: Any, num: int, of: str) -> list[Any]:
        try:
            values = list(returned)
        except TypeError:
            raise self._wrong(f"{returned!r} for {num} {of}", "a list with a number for each") from None
        if len(values) != num:
            raise self._wrong(f"{len(values)} rewards for {num} {of}", "one for each, in their order")
        return values

    def _raw(self, value: Any) -> RawReward:
        try:
            return RawReward(float(value))
        except (TypeError, ValueError):
            return_what = "lists of numbers" if self.per_turn else "numbers (lists of them are for reward.per_turn)"
            raise self._wrong(f"{value!r} for a reward", return_what) from None

    def _wrong(self, returned: str, wanted: str) -> AgentRLError:
        return AgentRLError(f"reward.path: {self.path} returned {returned}; return {wanted}")
