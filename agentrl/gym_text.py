"""Any Gymnasium environment as a text environment: two functions turn observations into words and words into acts."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium

from agentrl.env import SplitRole, TextEnv
from agentrl.errors import EnvError, NotFound
from agentrl.tasks import TaskSet, manifest_sha256


class GymTextAdapter(TextEnv):
    """Plays `env` in words. A task is a seed of its own, `seed-17`, which `env` is always reset with.

    Words that are no action cost a turn: the environment stands still, pays nothing, and `info["inadmissible"]` is set.
    An episode is a success when it terminated with a positive return, unless `success` says otherwise.
    """

    splits: Mapping[str, SplitRole] = MappingProxyType({"train": "train", "in_distribution": "in_distribution"})

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        parse: Callable[[str], Any | None],
        describe: Callable[[Any], str] = str,
        success: Callable[[float, Mapping[str, Any]], bool] | None = None,
        num_tasks: tuple[int, int] = (10_000, 200),
    ) -> None:
        """Takes the environment and the two functions.

        Args:
            env: what is played; its own limit on steps stays in force.
            parse: gives the action that a text means, None for none.
            describe: gives an observation in words.
            success: says of a finished episode's return and last info whether it was a success.
            num_tasks: how many seeds are for training, and how many others for evaluation.
        """
        super().__init__()
        self._env = env
        self._parse = parse
        self._describe = describe
        self._success = success
        self._num_tasks = num_tasks
        self._task_id, self._text, self._return = "", "", 0.0

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts the task, or a training task of the seed's choice."""
        super().reset(seed=seed)
        asked = (options or {}).get("task_id")
        self._task_id = f"seed-{self.np_random.integers(self._num_tasks[0])}" if asked is None else str(asked)
        observation, info = self._env.reset(seed=self._seed_of(self._task_id))
        self._text, self._return = self._said(observation), 0.0
        return self._text, {**info, "task_id": self._task_id}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Does what the text means."""
        meant = self._parse(action)
        about = {"task_id": self._task_id, "success": False, "inadmissible": meant is None}
        if meant is None:
            return self._text, 0.0, False, False, about
        observation, reward, terminated, truncated, info = self._env.step(meant)
        self._text, self._return = self._said(observation), self._return + float(reward)
        if terminated or truncated:
            won = terminated and self._return > 0
            about["success"] = self._success(self._return, info) if self._success else won
        return self._text, float(reward), bool(terminated), bool(truncated), {**info, **about}

    def task_set(self, split: str) -> TaskSet:
        """Gives the seeds of a split."""
        self.check_split(split)
        train, evaluation = self._num_tasks
        numbers = range(train) if split == "train" else range(train, train + evaluation)
        ids = sorted(f"seed-{number}" for number in numbers)
        return TaskSet(split, ids, manifest_sha256(ids))

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    def _seed_of(self, task_id: str) -> int:
        name, _, number = task_id.partition("-")
        if name != "seed" or not number.isdecimal():
            raise NotFound(f"GymTextAdapter has no task {task_id!r}; its tasks are seed-0, seed-1, ...")
        return int(number)

    def _said(self, observation: Any) -> str:
        text = self._describe(observation)
        if not isinstance(text, str):
            raise EnvError(f"describe gave {type(text).__name__} for an observation; return a string")
        return text
