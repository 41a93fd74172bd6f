"""What an evaluation comes to: every number with its 95 % interval, and every episode behind it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from agentrl.evaluation.records import to_record
from agentrl.evaluation.statistics import clustered_interval, pass_at_k, percentiles, resampled_means
from agentrl.tally import Outcome, Tally, wilson_interval
from agentrl.tasks import TaskSet

T = TypeVar("T")
UNKNOWN_TYPE = "unknown"
"""Type of tasks whose episodes all broke before it was told."""
_BOOTSTRAP = "bootstrap over tasks"


@dataclass(frozen=True)
class Plan:
    """What is measured, and under which conditions."""

    tasks: TaskSet
    role: str
    """What the split is for: `in_distribution`, `out_of_distribution` or `train`."""
    policy: str
    """What tables call whoever plays."""
    samples: int = 1
    """Episodes of each task."""
    seed: int = 0
    """Of the episodes."""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    """The conditions, as `protocol.conditions` gives them."""
    task_types: Sequence[str] = ()
    """The types that the environment's tasks may have; types that no task has are listed too."""
    policy_version: int | None = None
    """How many updates the weights have seen; None takes the engine's word."""


def result_of(plan: Plan, outcomes: Sequence[Outcome], *, env_id: str) -> dict[str, Any]:
    """Gives the JSON object of an evaluation; `outcomes` are all episodes, those of a task one after another."""
    tally = Tally(outcomes)
    by_type = {name: _rates(part, plan.samples) for name, part in _by_type(outcomes, plan.samples).items()}
    return {
        "env_id": env_id,
        "split": plan.tasks.split,
        "role": plan.role,
        "policy": plan.policy,
        "samples": plan.samples,
        "seed": plan.seed,
        **_rates(outcomes, plan.samples),
        "metrics": _metrics(outcomes, plan.samples),
        "mean_return": tally.mean_return,
        "mean_turns": tally.mean_turns,
        "mean_action_tokens": tally.mean_action_tokens,
        "format_invalid_frac": tally.format_invalid_frac,
        "inadmissible_frac": tally.inadmissible_frac,
        "endings": tally.endings,
        "reported": tally.reported,
        "reported_episodes_frac": _used(outcomes),
        "tokens": tally.tokens,
        "by_type": by_type,
        "types_without_tasks": [name for name in plan.task_types if name not in by_type],
        "manifest_sha256": plan.tasks.sha256,
        "protocol": dict(plan.protocol),
        "tasks": [to_record(outcome, number % plan.samples) for number, outcome in enumerate(outcomes)],
    }


def _rates(outcomes: Sequence[Outcome], samples: int) -> dict[str, Any]:
    tally = Tally(outcomes)
    interval, method = clustered_interval(_wins(outcomes, samples), samples)
    return {"num_tasks": len(outcomes) // samples, **tally.summary(), "ci95": list(interval), "ci95_method": method}


def _wins(outcomes: Sequence[Outcome], samples: int) -> list[int]:
    """Gives how many samples of each task were won."""
    return [sum(outcome.success for outcome in task) for task in _by_task(outcomes, samples)]


def _by_task(values: Sequence[T], samples: int) -> Iterator[Sequence[T]]:
    return (values[start : start + samples] for start in range(0, len(values), samples))


def _by_type(outcomes: Sequence[Outcome], samples: int) -> dict[str, list[Outcome]]:
    """Gives the episodes of each type of task, sorted by name; nothing where tasks have no types.

    An episode that broke before the environment told its type has that of its task's other samples, or else "unknown".
    """
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for task in _by_task(outcomes, samples):
        groups[next((one.task_type for one in task if one.task_type is not None), UNKNOWN_TYPE)].extend(task)
    return {name: groups[name] for name in sorted(groups)} if groups.keys() - {UNKNOWN_TYPE} else {}


def _used(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Gives, for each number that the environment reports, the share of the episodes in which it was not 0."""
    names = sorted({name for outcome in outcomes for name in outcome.numbers})
    return {name: sum(bool(one.numbers.get(name)) for one in outcomes) / len(outcomes) for name in names}


def _metrics(outcomes: Sequence[Outcome], samples: int) -> dict[str, dict[str, Any]]:
    """Gives each metric's value, interval and how the interval was made."""
    rate = _rates(outcomes, samples)
    success = {"value": rate["success_rate"], "ci95": rate["ci95"], "method": rate["ci95_method"]}
    found: dict[str, dict[str, Any]] = {"success_rate": success}
    if not outcomes:
        return found
    if samples > 1:
        found[f"avg@{samples}"] = success
    columns = _columns(outcomes, samples)
    table = np.array(list(columns.values()), dtype=float).T
    draws = dict(zip(columns, resampled_means(table).T, strict=True))
    means = dict(zip(columns, table.mean(axis=0).tolist(), strict=True))
    for name in columns:
        if name != "success" and (name != "action_tokens" or means[name]):
            found[name] = _bootstrapped(means[name], draws[name])
    if samples > 1:
        found["pass@1"] = success
        solved = sum(won > 0 for won in _wins(outcomes, samples))
        interval = list(wilson_interval(solved, len(table)))
        found[f"pass@{samples}"] = {"value": solved / len(table), "ci95": interval, "method": "Wilson"}
    if draws["action_tokens"].min() > 0:
        score = "score" if "score" in columns else "success"
        ratios = 100 * draws[score] / draws["action_tokens"]
        found["score_per_token"] = _bootstrapped(100 * means[score] / means["action_tokens"], ratios)
    return found


def _bootstrapped(value: float, draws: np.ndarray) -> dict[str, Any]:
    """Gives a metric; of tasks that all gave the same there is nothing to vary, and no width would be a lie."""
    if np.ptp(draws) < 1e-12:
        return {"value": value, "ci95": None, "method": "none, all tasks gave the same"}
    return {"value": value, "ci95": list(percentiles(draws)), "method": _BOOTSTRAP}


def _columns(outcomes: Sequence[Outcome], samples: int) -> dict[str, list[float]]:
    """Gives, for each number that is averaged over tasks, its mean over each task's samples."""
    names = sorted({name for outcome in outcomes for name in outcome.numbers})
    columns: dict[str, list[float]] = {
        "success": [float(outcome.success) for outcome in outcomes],
        "return": [outcome.episode_return for outcome in outcomes],
        "turns": [float(outcome.num_turns) for outcome in outcomes],
        "action_tokens": [float(outcome.action_tokens) for outcome in outcomes],
        **{name: [float(outcome.numbers.get(name, 0.0)) for outcome in outcomes] for name in names},
    }
    means = {name: [sum(task) / samples for task in _by_task(values, samples)] for name, values in columns.items()}
    wins = _wins(outcomes, samples)
    tries = sorted({2**power for power in range(samples.bit_length()) if 2**power <= samples} | {samples})
    passes = {f"pass@{k}": [pass_at_k(samples, won, k) for won in wins] for k in tries if samples > 1}
    return {**means, **passes}
