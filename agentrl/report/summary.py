"""Reads a run folder into frozen dataclasses: the only reader of run folders, so their layout is known here alone.

Whatever a run has not written yet is empty, never an error: a run that started a minute ago can be read.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrl.config.document import flatten, parse
from agentrl.errors import DataError, NotFound
from agentrl.trajectory import Trajectory

Point = tuple[float, float]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TypeResult:
    """How the episodes of one type of task went in an evaluation."""

    num_episodes: int
    success_rate: float
    ci95: Interval


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One eval/*.json: the episodes of one split under one policy."""

    step: int
    split: str
    role: str
    """`in_distribution`, `out_of_distribution` or `train`."""
    num_episodes: int
    success_rate: float
    ci95: Interval
    mean_return: float
    mean_turns: float
    by_type: Mapping[str, TypeResult]


@dataclass(frozen=True, slots=True)
class RolloutFile:
    """Where the trajectories of one step are."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True)
class Run:
    """What a run folder holds."""

    path: Path
    metrics: Mapping[str, tuple[Point, ...]]
    """(step, value) points of each metric key, in step order."""
    evaluations: tuple[Evaluation, ...]
    rollout_files: tuple[RolloutFile, ...]
    config: Mapping[str, Any]
    origins: Mapping[str, str]
    """Where each dotted config key got its value."""
    environment: Mapping[str, Any]
    """Command, commit, versions and machine."""
    tokenizer: Path | None
    """The newest checkpoint's tokenizer.json."""

    @property
    def name(self) -> str:
        """The folder's own name, a link such as `latest` followed."""
        return self.path.resolve().name

    @property
    def num_steps(self) -> int:
        """Steps that were logged; evaluations alone do not count."""
        return max((len(points) for key, points in self.metrics.items() if not key.startswith("eval_")), default=0)

    @property
    def total_s(self) -> float:
        """Wall-clock seconds of all logged steps and evaluations."""
        return sum(value for key in ("time/step_s", "time/eval_s") for _, value in self.metrics.get(key, ()))

    @property
    def method(self) -> str:
        """The algorithm's name, or "sft" for supervised training; empty when the configuration does not say."""
        return "sft" if "sft/loss" in self.metrics else str(self.setting("algorithm.name", ""))

    @property
    def planned_steps(self) -> int | None:
        """How many steps the configuration asks for."""
        return self.setting("sft.steps" if self.method == "sft" else "training.steps")

    def setting(self, key: str, default: object = None) -> Any:
        """Gives the value of a dotted config key, e.g. `training.seed`."""
        return dict(flatten(self.config)).get(key, default)

    def evaluations_of(self, role: str) -> tuple[Evaluation, ...]:
        """Gives the evaluations of one role in step order."""
        return tuple(evaluation for evaluation in self.evaluations if evaluation.role == role)


def read_run(path: Path) -> Run:
    """Gives everything a run folder holds but its trajectories, which `read_rollouts` reads.

    Raises:
        NotFound: the folder does not exist.
        DataError: a file in it is damaged.
    """
    if not path.is_dir():
        raise NotFound(f"{path}: no such run folder; 'runs/latest' is the newest run")
    config = path / "config.yaml"
    written = config.read_text(encoding="utf-8") if config.exists() else ""
    tokenizers = sorted(path.glob("checkpoints/*/tokenizer.json"), key=lambda file: step_of(file.parent))
    return Run(
        path=path,
        metrics=read_metrics(path / "metrics.jsonl"),
        evaluations=read_evaluations(path / "eval"),
        rollout_files=tuple(RolloutFile(step_of(file), file) for file in rollout_paths(path)),
        config=parse(written, lambda line: f"{config}:{line}").tree,
        origins=_read(path / "origins.json"),
        environment=_read(path / "environment.json"),
        tokenizer=tokenizers[-1] if tokenizers else None,
    )


def read_metrics(path: Path) -> Mapping[str, tuple[Point, ...]]:
    """Gives the points of each metric; a step logged twice counts once, its later values win.

    A last line without a line break is still being written, and is left for the next time.
    """
    points: dict[str, dict[int, float]] = {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            break
        try:
            record = json.loads(line)
            step = record.pop("step")
        except (ValueError, KeyError) as error:
            raise DataError(f"{path}:{number}: not a line of metrics; delete it to read the rest") from error
        for key, value in record.items():
            points.setdefault(key, {})[step] = value
    return {key: tuple(sorted(found.items())) for key, found in points.items()}


def read_evaluations(folder: Path) -> tuple[Evaluation, ...]:
    """Gives a run's evaluations in step order; of several of one role and step, that of the most episodes."""
    largest: dict[tuple[int, str], Evaluation] = {}
    for found in map(read_evaluation, sorted(folder.glob("*.json"))):
        known = largest.setdefault((found.step, found.role), found)
        if found.num_episodes > known.num_episodes:
            largest[found.step, found.role] = found
    return tuple(largest[key] for key in sorted(largest))


def read_evaluation(path: Path) -> Evaluation:
    """Gives one evaluation file.

    Raises:
        DataError: it is not one.
    """
    found = _read(path)
    try:
        by_type = {
            name: TypeResult(one["num_episodes"], one["success_rate"], tuple(one["ci95"]))
            for name, one in found["by_type"].items()
        }
        plain = ("split", "role", "num_episodes", "success_rate", "mean_return", "mean_turns")
        step = found["step"] if found.get("step") is not None else 0
        return Evaluation(step=step, ci95=tuple(found["ci95"]), by_type=by_type, **{key: found[key] for key in plain})
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: not an evaluation: {error!r}; run 'agentrl eval' again") from error


def read_rollouts(path: Path) -> Iterator[Trajectory]:
    """Gives the trajectories of one .jsonl or .jsonl.gz file, one at a time.

    Raises:
        NotFound: there is no such file.
        DataError: a line is not a trajectory.
    """
    if not path.is_file():
        raise NotFound(f"{path}: no such rollout file")
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Trajectory.from_dict(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{path}:{number}: not a trajectory: {error!r}") from error


def rank(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Orders trajectories from best to worst: by return, then by fewer turns, then as they were played."""
    return sorted(trajectories, key=lambda trajectory: (-trajectory.episode_return, len(trajectory.turns)))


def best_median_worst(trajectories: Sequence[Trajectory]) -> Mapping[str, Trajectory]:
    """Gives the three by name; of fewer than three trajectories, the ones there are."""
    ranked = rank(trajectories)
    places = {"best": 0, "median": len(ranked) // 2, "worst": len(ranked) - 1}
    names = ("best", "median", "worst") if len(ranked) > 2 else ("best", "worst")[: len(ranked)]
    return {name: ranked[places[name]] for name in names}


def rollout_paths(run: Path) -> list[Path]:
    """Gives the rollout files of a run folder in step order."""
    return sorted((run / "rollouts").glob("step_*.jsonl*"), key=step_of)


def step_of(path: Path) -> int:
    """Gives 100 for step_000100.jsonl.gz; -1 for a name without a number."""
    found = re.search(r"\d+", path.name)
    return int(found.group()) if found else -1


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}; was it cut short by a full disk?") from error
