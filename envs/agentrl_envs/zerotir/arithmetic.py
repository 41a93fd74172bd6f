"""Sums that nobody does in the head: the smallest problems for which a tool is worth calling."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentrl.errors import EnvError
from agentrl.tasks import TaskSet
from agentrl_envs.zerotir.boxes import as_integer
from agentrl_envs.zerotir.codecs import Codec
from agentrl_envs.zerotir.problems import Problem, generated_set, split_and_number

_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}
_HELD_OUT_SHARE = 16
"""One sum in so many is kept from training, by the hash of its text."""


@dataclass(frozen=True)
class ArithmeticKnobs:
    """What sums there are."""

    digits: Sequence[int] = (3, 4)
    """Lengths of the two numbers, each drawn anew."""
    digits_out: Sequence[int] = (5, 6)
    """The same, out of distribution."""
    operations: Sequence[str] = ("*",)
    """Of + - *."""

    def __post_init__(self) -> None:
        if unknown := set(self.operations) - set(_OPERATIONS):
            raise EnvError(f"operations: {', '.join(sorted(unknown))} are none of {', '.join(_OPERATIONS)}")
        if set(self.digits) & set(self.digits_out) or min([*self.digits, *self.digits_out]) < 1:
            raise EnvError("digits, digits_out: lengths are 1 or more, and none is both")


class Arithmetic:
    """Sums of two numbers; in distribution they are as long as in training, out of distribution longer."""

    def __init__(self, knobs: ArithmeticKnobs) -> None:
        self._knobs = knobs

    def task_set(self, split: str) -> TaskSet:
        """Gives the sums of a split."""
        return generated_set(split, self._knobs)

    def problem(self, task_id: str) -> Problem:
        """Gives a sum by its id."""
        split, number = split_and_number(task_id)
        rng = random.Random(f"{split} {number}")
        digits = self._knobs.digits_out if split == "out_of_distribution" else self._knobs.digits
        while True:
            left, right = (rng.randrange(10 ** (n - 1), 10**n) for n in rng.choices(list(digits), k=2))
            sign = rng.choice(list(self._knobs.operations))
            question = f"Compute {left} {sign} {right}."
            if split == "out_of_distribution" or _is_held_out(question) == (split == "in_distribution"):
                answer = _OPERATIONS[sign](left, right)
                return Problem(task_id, question, str(answer), "arithmetic")

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Tells whether the answer is that integer."""
        return as_integer(answer) == int(problem.answer)


class Calculator:
    """A player that calls the tool and copies its output; in a share `noise` of its episodes it guesses instead."""

    def __init__(self, seed: int, noise: float, *, codec: Codec) -> None:
        self._rng = random.Random(seed)
        self._noise = noise
        self._codec = codec
        self._sum = ""

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        """Gives the next turn."""
        del info
        if not self._sum:
            self._sum = observation.removeprefix("Compute ").removesuffix(".")
            guesses = self._rng.random() < self._noise
            return self._guess() if guesses else self._codec.write(f"print({self._sum})")
        return f"\\boxed{{{observation.removeprefix(self._codec.before).removesuffix(self._codec.after)}}}"

    def _guess(self) -> str:
        left, _, right = self._sum.split(" ")
        length = len(left) + len(right) - self._rng.randrange(2)
        return f"\\boxed{{{self._rng.randrange(10 ** (length - 1), 10**length)}}}"


def _is_held_out(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] % _HELD_OUT_SHARE == 0
