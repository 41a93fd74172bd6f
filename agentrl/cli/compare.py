"""Compare two evaluations of the same tasks, and say whether the data support a difference.

Each side is a result that 'agentrl eval' wrote, or a run folder, whose last evaluations are taken. Results that were
measured differently are refused, unless --force names what is to be ignored. ('agentrl report A B' draws the curves of
runs; this pairs their tasks.)
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrl.cli.parser import add_json
from agentrl.cli.terminal import as_json, facts, say, share
from agentrl.errors import NotFound

if TYPE_CHECKING:
    from agentrl.evaluation.pairing import Comparison, Measured

EXAMPLE = "agentrl compare before.json after.json"
TASKS_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("first", type=Path, metavar="A", help="a result's file, or a run folder")
    parser.add_argument("second", type=Path, metavar="B", help="what is compared with it")
    text = (
        "success (the default), return, turns, action_tokens, or a number that the environment reports, such as score"
    )
    parser.add_argument("--metric", default="success", metavar="NAME", help=text)
    text = "conditions that may differ, such as temperature; the error that refuses names them"
    parser.add_argument("--force", nargs="+", default=[], metavar="KEY", help=text)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compares."""
    from agentrl.evaluation.pairing import check_comparable, compare

    reports: list[dict[str, Any]] = []
    for first, second in _pairs(arguments.first, arguments.second):
        ignored = check_comparable(first, second, arguments.force)
        found = compare(first, second, arguments.metric)
        reports.append(_as_data(first, second, found, ignored))
        if not arguments.json:
            _print(first, second, found, ignored)
    if arguments.json:
        as_json(reports)
    return 0


def _pairs(first: Path, second: Path) -> list[tuple["Measured", "Measured"]]:
    """Gives the results to compare: of two runs, one pair for each split that both have measured."""
    from agentrl.evaluation.pairing import Measured

    sides = [_results(path) for path in (first, second)]
    if first.is_dir() or second.is_dir():
        read = [{one.facts["split"]: one for one in map(Measured.read, side)} for side in sides]
        shared = [split for split in read[0] if split in read[1]]
        if not shared:
            known = " and ".join(
                f"{path} has {', '.join(one)}" for path, one in zip((first, second), read, strict=True)
            )
            raise NotFound(f"no split that both have measured: {known}")
        return [(read[0][split], read[1][split]) for split in shared]
    return [(Measured.read(sides[0][0]), Measured.read(sides[1][0]))]


def _results(path: Path) -> list[Path]:
    """Gives a result's file, or of a run the last evaluation of each side."""
    from agentrl.report.summary import step_of

    if not path.is_dir():
        return [path]
    last: dict[str, Path] = {}
    for file in sorted((path / "eval").glob("step_*.json"), key=step_of):
        last[file.stem.partition("_")[2].partition("_")[2]] = file
    if not last:
        raise NotFound(f"{path}: no evaluations in {path / 'eval'}; 'agentrl eval' writes results that can be compared")
    return list(last.values())


def sentence(found: "Comparison") -> str:
    """Says in one sentence what the data support."""
    chance = f"p = {found.p_value:.2g}, {found.test}"
    if not found.gained and not found.lost:
        return f"No task changed: the data do not support a difference of {found.metric}."
    if not found.is_supported:
        return f"The data do not support a difference of {found.metric}: luck alone does as much ({chance})."
    better = "higher" if found.difference > 0 else "lower"
    return f"The data support that B's {found.metric} is {better}: luck alone rarely does as much ({chance})."


def _as_data(first: "Measured", second: "Measured", found: "Comparison", ignored: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "first": str(first.path),
        "second": str(second.path),
        "split": first.facts["split"],
        "metric": found.metric,
        "num_tasks": found.num_tasks,
        "means": [found.first, found.second],
        "difference": found.difference,
        "ci95": found.ci95,
        "p_value": found.p_value,
        "test": found.test,
        "supported": found.is_supported,
        "gained": found.gained,
        "lost": found.lost,
        "ignored": {key: list(values) for key, values in ignored.items()},
        "sentence": sentence(found),
    }


def _print(first: "Measured", second: "Measured", found: "Comparison", ignored: Mapping[str, Any]) -> None:
    is_success = found.metric == "success"
    means = [share(mean) if is_success else f"{mean:.4g}" for mean in (found.first, found.second)]
    width = max(map(len, means))
    scale, unit = (100, " points") if is_success else (1, "")
    interval = "unknown" if found.ci95 is None else f"[{scale * found.ci95[0]:+.4g}, {scale * found.ci95[1]:+.4g}]"
    higher, lower = ("gained", "lost") if is_success else ("higher in", "lower in")
    say(f"{first.facts['split']}, {found.num_tasks} tasks, {found.metric}", style="bold")
    rows = [
        ("A", f"{means[0]:<{width}}  {first.name}, {_samples(first)}"),
        ("B", f"{means[1]:<{width}}  {second.name}, {_samples(second)}"),
        ("B - A", f"{scale * found.difference:+.4g}{unit}, 95 % interval {interval}"),
        (higher, _listed(found.gained)),
        (lower, _listed(found.lost)),
    ]
    rows += [("ignored", f"{key}: {there!r} and {here!r}") for key, (there, here) in ignored.items()]
    facts(rows)
    say(f"  {sentence(found)}\n", style="bold cyan")


def _samples(one: "Measured") -> str:
    return "1 sample of each task" if one.samples == 1 else f"{one.samples} samples of each task"


def _listed(ids: Sequence[str]) -> str:
    if not ids:
        return "no task"
    more = f", and {len(ids) - TASKS_SHOWN} more, which --json lists" if len(ids) > TASKS_SHOWN else ""
    return f"{len(ids)}: {', '.join(ids[:TASKS_SHOWN])}{more}"
