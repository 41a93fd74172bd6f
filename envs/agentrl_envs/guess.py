"""The smallest environment: find a hidden digit. A two-layer model learns it from scratch in a minute."""

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from agentrl.env import Actor, SplitRole, TextEnv
from agentrl.errors import EnvError, NotFound
from agentrl.tasks import TaskSet, manifest_sha256
from agentrl_envs.recorded import recorded

_ALL = [*"0123456789"]
_DIGITS = {"train": "01245689", "in_distribution": "01245689", "out_of_distribution": "37"}


class Guess(TextEnv):
    """Find a hidden digit; after each guess the environment says higher, lower or correct. Tasks are the digits."""

    splits: Mapping[str, SplitRole] = MappingProxyType(
        {"train": "train", "in_distribution": "in_distribution", "out_of_distribution": "out_of_distribution"}
    )
    inline = True
    random_bound = 0.5
    """1 - 0.9 ** 6 = 0.47: six guesses among ten digits."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Hides the digit that the task is, or a training digit of the seed's choice."""
        super().reset(seed=seed)
        self.secret = str((options or {}).get("task_id") or self.np_random.choice(list(_DIGITS["train"])))
        if self.secret not in _ALL:
            raise NotFound(f"Guess has no task {self.secret!r}; its tasks are the digits 0 to 9")
        self.is_over = False
        return "I think of a digit.", self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Pays 1 for the right digit and tells the direction otherwise."""
        if self.is_over:
            raise EnvError("the digit is found; call reset before the next step")
        guess = action.strip()
        won = self.is_over = guess == self.secret
        answer = "correct" if won else "higher" if guess < self.secret else "lower"
        return (
            answer,
            float(won),
            won,
            False,
            self._info() | {"success": won, "inadmissible": guess not in _ALL},
        )

    def task_set(self, split: str) -> TaskSet:
        """Gives the digits of a split."""
        self.check_split(split)
        return TaskSet(split, list(_DIGITS[split]), manifest_sha256(_DIGITS[split]))

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        """Gives a player that halves what is left."""
        return _Bisection(seed, noise)

    @property
    def recorded(self) -> Mapping[str, str]:
        """Hashes of its manifests."""
        return recorded("guess")

    def _info(self) -> dict[str, Any]:
        return {"task_id": self.secret, "task": "Find the digit.", "admissible_actions": [*_ALL]}


class _Bisection:
    def __init__(self, seed: int, noise: float) -> None:
        self._rng = random.Random(seed)
        self._noise = noise
        self._low, self._high, self._guess = 0, 9, -1

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        if observation == "higher":
            self._low = max(self._low, self._guess + 1)
        if observation == "lower":
            self._high = min(self._high, self._guess - 1)
        if self._rng.random() < self._noise:
            self._guess = self._rng.randrange(10)
        else:
            self._guess = (self._low + self._high) // 2
        return str(self._guess)
