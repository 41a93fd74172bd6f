"""What a problem is, and where problems come from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agentrl.env import SplitRole
from agentrl.errors import NotFound
from agentrl.tasks import NumberedIds, TaskSet, manifest_sha256

ROLES: Mapping[str, SplitRole] = {
    "train": "train",
    "in_distribution": "in_distribution",
    "out_of_distribution": "out_of_distribution",
}
"""The splits of every source, and what each is for."""
NUM_GENERATED = {"train": 1_000_000, "in_distribution": 256, "out_of_distribution": 256}


@dataclass(frozen=True, slots=True)
class Problem:
    """One question and its answer."""

    id: str
    question: str
    answer: str
    """As it would stand in a box."""
    kind: str
    """The set that it belongs to, for tables by type."""


class ProblemSource(Protocol):
    """A family of problems that are judged alike."""

    def task_set(self, split: str) -> TaskSet:
        """Gives the problems of a split."""
        ...

    def problem(self, task_id: str) -> Problem:
        """Gives a problem by its id."""
        ...

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Tells whether an answer, cut out of its box, is right.

        Raises:
            EnvError: it could not be found out.
        """
        ...


def generated_set(split: str, knobs: object) -> TaskSet:
    """Gives a generated split; its hash is over the generator's knobs, the split and its size."""
    ids = NumberedIds(split, NUM_GENERATED[split])
    return TaskSet(split, ids, manifest_sha256([repr(knobs), f"{split} {len(ids)}"]))


def split_and_number(task_id: str) -> tuple[str, int]:
    """Gives the split and the number in the id of a generated problem.

    Raises:
        NotFound: there is no such problem.
    """
    split, _, number = task_id.partition("/")
    if not (re.fullmatch("[0-9]{9}", number) and int(number) < NUM_GENERATED.get(split, 0)):
        last = ", ".join(f"{split}/{num - 1:09d}" for split, num in NUM_GENERATED.items())
        raise NotFound(f"no problem {task_id!r}; ids read train/000000000 and so on, up to {last}")
    return split, int(number)
