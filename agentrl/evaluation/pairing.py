"""Two evaluations of the same tasks, task by task: is one policy better, or was it luck?

A task that is easy for one policy is easy for the other too, so the difference on each task says far more than two
rates side by side.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentrl.errors import AgentRLError, DataError, NotFound, did_you_mean
from agentrl.evaluation.records import differences, from_record
from agentrl.evaluation.statistics import mcnemar, paired_interval, percentiles, resampled_means, sign_flip
from agentrl.tally import Outcome

SUPPORTED = 0.05
"""A p-value below this supports a difference, by the field's habit."""
OWN_METRICS = ("success", "return", "turns", "action_tokens")
_SPOKEN = ("prompt", "prompt_sha256", "history", "max_tokens", "context_tokens", "temperature", "top_p")
"""Conditions of models alone."""


@dataclass(frozen=True)
class Measured:
    """One result file."""

    path: Path
    facts: Mapping[str, Any]
    """The whole result."""
    tasks: Mapping[str, Sequence[Outcome]]
    """Task id -> its samples."""

    @classmethod
    def read(cls, path: Path) -> "Measured":
        """Reads a result.

        Raises:
            NotFound: there is no such file.
            DataError: it is no result, or it lacks episodes that it counts.
        """
        if not path.is_file():
            raise NotFound(f"{path}: no such result; 'agentrl eval' writes one, 'runs/latest' is the newest run")
        tasks: dict[str, list[Outcome]] = {}
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            for record in facts["tasks"]:
                (task_id, _), outcome = from_record(record)
                tasks.setdefault(task_id, []).append(outcome)
            samples, num = facts["samples"], facts["num_tasks"]
            lacking = [key for key in ("protocol", "split", "policy") if key not in facts]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: not a result: {error!r}; run 'agentrl eval' again") from error
        if lacking:
            raise DataError(f"{path}: does not say its {' and '.join(lacking)}; run 'agentrl eval' again")
        uneven = [task_id for task_id, outcomes in tasks.items() if len(outcomes) != samples]
        if uneven or len(tasks) != num:
            raise DataError(
                f"{path}: has {len(tasks)} of {num} tasks, {len(uneven)} not {samples} times; it was changed"
            )
        return cls(path, facts, tasks)

    @property
    def samples(self) -> int:
        """Episodes of each task."""
        return self.facts["samples"]

    @property
    def name(self) -> str:
        """What sentences call it."""
        return f"{self.facts['policy']} ({self.path})"

    def value(self, task_id: str, metric: str) -> float:
        """Gives the mean of a metric over a task's samples."""
        outcomes = self.tasks[task_id]
        return math.fsum(_value(outcome, metric) for outcome in outcomes) / len(outcomes)


def _value(outcome: Outcome, metric: str) -> float:
    match metric:
        case "success":
            return float(outcome.success)
        case "return":
            return outcome.episode_return
        case "turns":
            return float(outcome.num_turns)
        case "action_tokens":
            return float(outcome.action_tokens)
        case _:
            return float(outcome.numbers.get(metric, 0.0))


def check_comparable(first: Measured, second: Measured, ignored: Collection[str] = ()) -> dict[str, tuple[Any, Any]]:
    """Gives the conditions that differ and are ignored, with both values.

    What a player without a model has no value for, such as its temperature, is no difference.

    Raises:
        AgentRLError: others differ, or `ignored` names what does not.
    """
    own, other = (_named(one.facts["protocol"]) for one in (first, second))
    found = {
        key: values
        for key, values in differences(own, other).items()
        if key != "samples" and not (key in _SPOKEN and None in values)
    }
    if "manifest_sha256" not in found and set(first.tasks) != set(second.tasks):
        raise DataError(f"{first.path} and {second.path}: one manifest and different tasks; one of them was changed")
    if useless := [key for key in ignored if key not in found]:
        hint = did_you_mean(useless[0], found)
        raise AgentRLError(
            f"--force {useless[0]}: it does not differ.{hint} What does: {', '.join(found) or 'nothing'}"
        )
    if left := {key: values for key, values in found.items() if key not in ignored}:
        told = "; ".join(f"{key}: {there!r} and {here!r}" for key, (there, here) in left.items())
        what_to_do = f"measure both alike, or ignore it with --force {' '.join(left)}"
        raise AgentRLError(f"{first.path} and {second.path} cannot be compared: {told}; {what_to_do}")
    return found


def _named(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the conditions with the profile's name and hash alone; what was changed of it differs by itself."""
    profile = protocol.get("profile")
    return {**protocol, "profile": profile and f"{profile['name']} {profile['sha256'][:12]}"}


@dataclass(frozen=True)
class Comparison:
    """What two results say of one metric."""

    metric: str
    first: float
    second: float
    """Means over the shared tasks."""
    num_tasks: int
    ci95: tuple[float, float] | None
    """Of second minus first; None where no task changed and the bootstrap has nothing to vary."""
    p_value: float
    """How often luck alone gives so large a difference either way, if there is none."""
    test: str
    gained: tuple[str, ...]
    """Tasks on which the second has more of the metric."""
    lost: tuple[str, ...]
    """Tasks on which it has less."""

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first

    @property
    def is_supported(self) -> bool:
        """Whether the data support that there is a difference."""
        return self.p_value < SUPPORTED


def compare(first: Measured, second: Measured, metric: str = "success") -> Comparison:
    """Compares two results on the tasks that both have.

    Success of one sample each: McNemar's exact test and Newcombe's interval. Else: the paired randomization test and
    the bootstrap over tasks of their differences.

    Raises:
        AgentRLError: no such metric, or no task in common.
    """
    numbers = {name for one in (first, second) for task in one.tasks.values() for o in task for name in o.numbers}
    known = [*OWN_METRICS, *sorted(numbers)]
    if metric not in known:
        hint = did_you_mean(metric, known)
        raise AgentRLError(f"--metric {metric}: not in the results.{hint} There are: {', '.join(known)}")
    shared = sorted(first.tasks.keys() & second.tasks.keys())
    if not shared:
        raise AgentRLError(f"{first.path} and {second.path} have no task in common")
    left, right = ([one.value(task_id, metric) for task_id in shared] for one in (first, second))
    moves = [after - before for before, after in zip(left, right, strict=True)]
    gained = tuple(task_id for task_id, move in zip(shared, moves, strict=True) if move > 0)
    lost = tuple(task_id for task_id, move in zip(shared, moves, strict=True) if move < 0)
    interval: tuple[float, float] | None
    if metric == "success" and first.samples == second.samples == 1:
        both = sum(a == b == 1 for a, b in zip(left, right, strict=True))
        interval = paired_interval(both, len(gained), len(lost), len(shared) - both - len(gained) - len(lost))
        p_value, test = mcnemar(len(gained), len(lost)), "McNemar's exact test"
    else:
        draws = resampled_means(np.array(moves)[:, None])[:, 0]
        interval = percentiles(draws) if np.ptp(draws) > 1e-12 else None
        p_value, test = sign_flip(moves), "paired randomization test"
    means = [math.fsum(values) / len(shared) for values in (left, right)]
    return Comparison(metric, means[0], means[1], len(shared), interval, p_value, test, gained, lost)
