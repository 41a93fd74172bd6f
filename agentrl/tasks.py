"""Which problems there are and in which order they are played."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Task:
    """One episode to play: a problem, its group and the seed of this attempt."""

    id: str
    seed: int
    group: int


@dataclass(frozen=True)
class TaskSet:
    """The problems of one split, sorted by id.

    `sha256` is the hash of the split's manifest: two runs with the same hash played the same problems.
    """

    split: str
    ids: Sequence[str]
    sha256: str

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, limit: int | None) -> "TaskSet":
        """Gives the first `limit` tasks as a set of its own (all of them for None)."""
        if limit is None or limit >= len(self.ids):
            return self
        ids = [self.ids[i] for i in range(limit)]
        return TaskSet(self.split, ids, manifest_sha256(ids))


class NumberedIds(Sequence[str]):
    """The ids of a generated split, "train/000000000" and up: as good as a list, in no space."""

    def __init__(self, split: str, num: int) -> None:
        self._split = split
        self._num = num

    def __len__(self) -> int:
        return self._num

    def __getitem__(self, index: Any) -> Any:
        picked = range(self._num)[index]
        return self._id(picked) if isinstance(picked, int) else list(map(self._id, picked))

    def _id(self, number: int) -> str:
        return f"{self._split}/{number:09d}"


def manifest_sha256(lines: Iterable[str]) -> str:
    """Gives the hash of a manifest: sha256 over its lines, each closed by a newline."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


class TaskSampler:
    """Draws the tasks of each training step; a pure function of seed and step, so that a resumed run goes on exactly.

    Passes over the whole set one shuffled epoch after another: no task comes twice before all came once.
    """

    def __init__(self, tasks: TaskSet, *, tasks_per_step: int, group_size: int, seed: int) -> None:
        self.tasks = tasks
        self.tasks_per_step = tasks_per_step
        self.group_size = group_size
        self.seed = seed
        self._shuffled: tuple[int, np.ndarray] | None = None

    def batch(self, step: int) -> list[Task]:
        """Gives the episodes of a step: `group_size` attempts at each of `tasks_per_step` tasks, with distinct seeds.

        A group is all attempts at one task, also when a small set gives it twice.
        """
        first = step * self.tasks_per_step
        ids = [self._id(position) for position in range(first, first + self.tasks_per_step)]
        groups = {task_id: group for group, task_id in enumerate(dict.fromkeys(ids))}
        rng = np.random.default_rng((self.seed, 1, step))
        seeds = rng.integers(2**62, size=(len(ids), self.group_size))
        return [
            Task(task_id, int(seed), groups[task_id]) for task_id, row in zip(ids, seeds, strict=True) for seed in row
        ]

    def refill(self, step: int, attempt: int, num: int, played: Collection[str]) -> list[Task]:
        """Gives the episodes of up to `num` more tasks of a step, none of them `played` in it already.

        A pure function of its arguments too: it draws beside the epochs, which go on as if it had not been called.
        """
        rng = np.random.default_rng((self.seed, 3, step, attempt))
        left = [task_id for task_id in self.tasks.ids if task_id not in played]
        chosen = rng.choice(len(left), size=min(num, len(left)), replace=False)
        seeds = rng.integers(2**62, size=(len(chosen), self.group_size))
        return [
            Task(left[index], int(seed), len(played) + number)
            for number, (index, row) in enumerate(zip(chosen, seeds, strict=True))
            for seed in row
        ]

    def _id(self, position: int) -> str:
        epoch, index = divmod(position, len(self.tasks))
        if self._shuffled is None or self._shuffled[0] != epoch:
            self._shuffled = (epoch, np.random.default_rng((self.seed, 0, epoch)).permutation(len(self.tasks)))
        return self.tasks.ids[int(self._shuffled[1][index])]


def every_task(tasks: TaskSet, *, samples: int, seed: int) -> list[Task]:
    """Gives `samples` attempts at each task, in order: the plan of an evaluation."""
    rng = np.random.default_rng((seed, 2))
    seeds = rng.integers(2**62, size=(len(tasks), samples))
    return [Task(tasks.ids[group], int(seed), group) for group in range(len(tasks)) for seed in seeds[group]]
