"""Several runs side by side: runs that differ only in their seed are one group, and stand as one row."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrl.config.document import flatten
from agentrl.report.summary import Evaluation, Interval, Point, Run, TypeResult, read_run

STUDENT_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""97.5 % quantiles of Student's t with 1 to 9 degrees of freedom; with more, 1.96 * (1 + 1.3 / df) is within 1 %."""
MISSING = "-"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A success rate and its 95 % interval."""

    rate: float
    ci95: Interval
    num_seeds: int
    """With one seed the interval is over episodes; with more it is over seeds."""

    def __str__(self) -> str:
        """Gives "53.1 % [47.2, 58.9]"."""
        return f"{100 * self.rate:.1f} % [{100 * self.ci95[0]:.1f}, {100 * self.ci95[1]:.1f}]"


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one configuration under different seeds."""

    label: str
    runs: tuple[Run, ...]

    def series(self, key: str) -> list[tuple[Point, ...]]:
        """Gives the metric's points of each run that logged it."""
        return [run.metrics[key] for run in self.runs if key in run.metrics]

    def mean(self, key: str) -> list[Point]:
        """Gives the mean over seeds at every step that all of them have reached."""
        series = [dict(points) for points in self.series(key)]
        shared = sorted(set.intersection(*map(set, series))) if series else []
        return [(step, math.fsum(points[step] for points in series) / len(series)) for step in shared]

    def estimates(self, role: str) -> list[tuple[int, Estimate]]:
        """Gives (step, estimate) of every step at which some seed was evaluated on the role's split."""
        by_step: dict[int, list[Evaluation]] = {}
        for run in self.runs:
            for evaluation in run.evaluations_of(role):
                by_step.setdefault(evaluation.step, []).append(evaluation)
        return [(step, estimate(found)) for step, found in sorted(by_step.items())]

    def final(self, role: str) -> Estimate | None:
        """Gives the estimate from each seed's last evaluation; None before the first one."""
        last = [run.evaluations_of(role)[-1] for run in self.runs if run.evaluations_of(role)]
        return estimate(last) if last else None


def group_runs(runs: Sequence[Run]) -> tuple[Group, ...]:
    """Groups runs whose configurations agree in all but the seed and the logging, in the order given."""
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(repr(sorted(_identity(run).items())) if run.config else run.name, []).append(run)
    differing = differences(runs)
    labels: list[str] = []
    for group in members.values():
        label = config_name(group[0])
        if sum(config_name(other[0]) == label for other in members.values()) > 1:
            told = (f"{key.rpartition('.')[2]}={dict(flatten(group[0].config)).get(key)}" for key in differing)
            label = f"{label} ({', '.join(told)})" if differing else group[0].name
        labels.append(label)
    return tuple(Group(label, tuple(group)) for label, group in zip(labels, members.values(), strict=True))


def config_name(run: Run) -> str:
    """Gives "guess_rloo" for the folder 2026-11-30_014107_guess_rloo_s0."""
    return re.sub(r"^\d{4}-\d\d-\d\d_\d+_|_s\d+(_\d+)?$", "", run.name)


def differences(runs: Sequence[Run]) -> Mapping[str, tuple[Any, ...]]:
    """Gives each setting that differs between runs, with its value in every run; seed and logging aside."""
    settings = [_identity(run) for run in runs]
    keys = dict.fromkeys(key for setting in settings for key in setting)
    rows = {key: tuple(setting.get(key) for setting in settings) for key in keys}
    return {key: values for key, values in rows.items() if any(value != values[0] for value in values)}


def estimate(results: Sequence[Evaluation | TypeResult]) -> Estimate:
    """Gives the mean success rate over seeds and its 95 % interval; of one seed, its own interval.

    Over seeds it is Student's interval, but never narrower than the seeds' own intervals allow, which are combined as
    those of independent estimates (MOVER, Zou and Donner 2008): three seeds that agree by luck do not make a point.
    """
    rates = [result.success_rate for result in results]
    count, mean = len(rates), math.fsum(rates) / len(rates)
    if count == 1:
        return Estimate(mean, results[0].ci95, 1)
    deviation = math.sqrt(math.fsum((rate - mean) ** 2 for rate in rates) / (count - 1))
    quantile = STUDENT_T[count - 2] if count - 2 < len(STUDENT_T) else 1.96 * (1 + 1.3 / (count - 1))
    half = quantile * deviation / math.sqrt(count)
    below, above = (math.hypot(*(each.success_rate - each.ci95[end] for each in results)) / count for end in (0, 1))
    return Estimate(mean, (max(0.0, mean - max(half, below)), min(1.0, mean + max(half, above))), count)


RESULT_COLUMNS = (
    "configuration",
    "environment",
    "algorithm",
    "seeds",
    "in-distribution",
    "out-of-distribution",
    "steps",
    "hours",
    "commit",
)


def result_rows(groups: Sequence[Group]) -> list[tuple[str, ...]]:
    """Gives one row of text a group, under RESULT_COLUMNS; hours are of all seeds together."""
    rows: list[tuple[str, ...]] = []
    for group in groups:
        run = group.runs[0]
        commits = sorted({str(one.environment.get("commit", ""))[:7] for one in group.runs} - {""})
        steps = sorted({one.num_steps for one in group.runs})
        rows.append(
            (
                group.label,
                str(run.setting("env.id", MISSING)),
                run.method or MISSING,
                str(len(group.runs)),
                str(group.final("in_distribution") or MISSING),
                str(group.final("out_of_distribution") or MISSING),
                "-".join(map(str, dict.fromkeys((steps[0], steps[-1])))),
                f"{sum(one.total_s for one in group.runs) / 3600:.2f}",
                " ".join(commits) or MISSING,
            )
        )
    return rows


def results_table(run_dirs: Sequence[Path]) -> str:
    """Gives the README's results table in Markdown: a row for each configuration, means over its seeds."""
    groups = group_runs([read_run(path) for path in run_dirs])
    lines = [RESULT_COLUMNS, ("---",) * len(RESULT_COLUMNS), *result_rows(groups)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _identity(run: Run) -> dict[str, Any]:
    return {
        key: value for key, value in flatten(run.config) if key != "training.seed" and not key.startswith("logging.")
    }
