"""The data sets of reasoning-gym as problems. Its scorers, some of which execute answers, run in the sandbox."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from agentrl.errors import EnvError, MissingExtra, did_you_mean
from agentrl.tasks import TaskSet
from agentrl_envs.zerotir.grading import GradingFailed
from agentrl_envs.zerotir.problems import Problem, generated_set, split_and_number
from agentrl_envs.zerotir.tool import open_sandbox

_SIZE = 1 << 31
_STRIDE = 1 << 10
"""Items of the data set that one problem may choose from, to be of its side of the split."""
_RIGHT = 1 - 1e-6
"""Wrong answers score up to 0.99; only a full score is right."""
_WALL_S = 10.0
_SCORER = """
import json, reasoning_gym
dataset = reasoning_gym.create_dataset({name!r}, seed={seed}, size={size}, **{options!r})
entry = dataset[{index}]
try:
    score = float(dataset.score_answer({answer!r}, entry))
except Exception:  # not in the form that this scorer reads
    score = 0.0
print(json.dumps(score))
"""


@dataclass(frozen=True)
class GymKnobs:
    """Which problems are made."""

    dataset: str = "countdown"
    """Name of one of reasoning-gym's data sets."""
    seed: int = 0
    """Seed of the data set."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own settings, such as {min_numbers: 3}; they set the difficulty."""
    options_out: Mapping[str, Any] = field(default_factory=dict)
    """Settings out of distribution, on top of `options`; required, or nothing would be out of distribution."""


class GymProblems:
    """Problems of one data set."""

    def __init__(self, knobs: GymKnobs) -> None:
        if not knobs.options_out:
            raise EnvError("options_out: say what is out of distribution, such as {min_numbers: 6, max_numbers: 6}")
        self._knobs = knobs
        self._datasets = {out: self._dataset(self._options(out)) for out in (False, True)}
        self._places: dict[str, int] = {}

    def task_set(self, split: str) -> TaskSet:
        """Gives the problems of a split."""
        return generated_set(split, self._knobs)

    def problem(self, task_id: str) -> Problem:
        """Gives a problem by its id."""
        index = self._index(task_id)
        item = self._datasets[_is_out(task_id)][index]
        return Problem(task_id, str(item["question"]), str(item["answer"] or ""), str(self._knobs.dataset))

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Tells whether the data set's own scorer gives the answer full marks."""
        code = _SCORER.format(
            name=self._knobs.dataset,
            seed=self._knobs.seed,
            size=_SIZE,
            options=self._options(_is_out(problem.id)),
            index=self._index(problem.id),
            answer=answer,
        )
        result = open_sandbox("auto", preload=("reasoning_gym",)).run(code, wall_s=_WALL_S)
        if result.status in ("timeout", "cpu_limit", "killed", "output_limit"):
            return False
        if result.status != "ok":
            raise GradingFailed(f"the scorer of {self._knobs.dataset} broke: {result.stderr.strip()[-500:]}")
        return json.loads(result.stdout.splitlines()[-1]) >= _RIGHT

    def _options(self, out: bool) -> dict[str, Any]:
        return {**self._knobs.options, **(self._knobs.options_out if out else {})}

    def _dataset(self, options: Mapping[str, Any]) -> Any:
        gym = _reasoning_gym()
        known = gym.factory.DATASETS
        if self._knobs.dataset not in known:
            hint = did_you_mean(self._knobs.dataset, known)
            raise EnvError(f"dataset: reasoning-gym has no {self._knobs.dataset!r}.{hint}")
        try:
            return gym.create_dataset(self._knobs.dataset, seed=self._knobs.seed, size=_SIZE, **options)
        except (TypeError, AssertionError, ValueError) as error:
            raise EnvError(f"dataset {self._knobs.dataset}: {error}") from error

    def _index(self, task_id: str) -> int:
        """Gives the place of a problem: the first from its own on whose text is of the right side, by its hash."""
        if task_id not in self._places:
            split, number = split_and_number(task_id)
            dataset, first = self._datasets[_is_out(task_id)], number * _STRIDE
            places = range(first, first + _STRIDE)
            wanted = (place for place in places if _side(dataset[place]["question"]) == split)
            self._places[task_id] = first if _is_out(task_id) else next(wanted)
        return self._places[task_id]


def _is_out(task_id: str) -> bool:
    return task_id.startswith("out_of_distribution/")


def _side(question: str) -> str:
    return "in_distribution" if hashlib.sha256(question.encode()).digest()[0] % 2 else "train"


def _reasoning_gym() -> ModuleType:
    try:
        import reasoning_gym
    except ImportError as error:
        raise MissingExtra("source gym", "zerotir") from error
    return reasoning_gym
