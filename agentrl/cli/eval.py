"""Measure a policy: every task of a split, with 95 % intervals.

A run folder is measured at its newest checkpoint, a configuration at the weights that it starts from. The results are
written as JSON: of a run to its folder eval/extra, of a configuration to the working folder, or where --out says.
"""

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrl.cli.parser import add_json, whole
from agentrl.cli.target import Target, add_target, find_agent, find_collector, find_target, policy_name
from agentrl.cli.terminal import as_json, interval, say, share, table
from agentrl.errors import AgentRLError

if TYPE_CHECKING:
    from agentrl.config import RunConfig

EXAMPLE = "agentrl eval runs/latest --split out --samples 4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    add_target(parser)
    text = "in, out (the configuration's eval_in, eval_out), all (both), or a split's own name; all by default"
    parser.add_argument("--split", default="all", help=text)
    parser.add_argument("--samples", type=whole(1), default=1, metavar="K", help="episodes of each task; 1 by default")
    parser.add_argument("--limit", type=whole(1), metavar="N", help="play the first N tasks of each split only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there; of several splits, FILE_SPLIT")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evaluates."""
    from agentrl import assembly
    from agentrl.evaluation.evaluate import evaluate

    target = find_target(arguments.target, arguments.set, arguments.checkpoint)
    config = target.loaded.config
    splits = _splits(config, arguments.split)
    roles = assembly.one_env(config).splits
    sets = [assembly.task_set(config, split).first(arguments.limit) for split in splits]
    seed = config.training.seed if arguments.seed is None else arguments.seed
    name = policy_name(target, arguments)
    agent, collector = find_agent(target, arguments), find_collector(target, arguments)
    results: list[dict[str, Any]] = []
    for tasks in sets:
        found = evaluate(
            agent, collector, tasks, role=roles[tasks.split], policy=name, samples=arguments.samples, seed=seed
        )
        results.append({**found, "step": target.step, "seed": seed, "command": arguments.command})
    collector.close()
    paths = [_path(target, arguments, result, several=len(results) > 1) for result in results]
    for path, result in zip(paths, results, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if arguments.json:
        as_json(results)
    else:
        _print(results)
        say(f"\nWritten to {' and '.join(map(str, paths))}")
    return 0


def _splits(config: "RunConfig", asked: str) -> list[str]:
    """Gives the names of the splits that are asked for."""
    named = {"in": config.tasks.eval_in, "out": config.tasks.eval_out}
    wanted = list(named) if asked == "all" else [asked]
    splits = [split for side in wanted if (split := named.get(side, side))]
    if not splits:
        keys = " and ".join(f"tasks.eval_{side}" for side in wanted)
        raise AgentRLError(f"--split {asked}: {keys} not set; set it, or give the name of a split: 'agentrl envs list'")
    return splits


def _path(target: Target, arguments: argparse.Namespace, result: dict[str, Any], *, several: bool) -> Path:
    """Gives where a result is written; a run's own evaluations, which its report shows, are never touched."""
    out: Path | None = arguments.out
    if out:
        return out.with_name(f"{out.stem}_{result['split']}{out.suffix}") if several else out
    parts = [f"step_{target.step:06d}"] if target.run else ["eval", target.name]
    parts += [
        result["split"],
        *([] if arguments.policy == "model" and arguments.agent == "direct" and target.run else [result["policy"]]),
    ]
    parts += [f"t{arguments.temperature:g}"] if arguments.temperature is not None else []
    parts += [f"k{arguments.samples}"] if arguments.samples > 1 else []
    parts += [f"first{arguments.limit}"] if arguments.limit else []
    folder = target.run / "eval" / "extra" if target.run else Path()
    return folder / f"{re.sub(r'[^A-Za-z0-9._]+', '-', '_'.join(parts))}.json"


def _print(results: list[dict[str, Any]]) -> None:
    titles = ("split", "role", "policy", "episodes", "success", "95 % interval", "turns", "inadmissible", "unreadable")
    table([(*titles, "manifest"), *([*_row(result), result["manifest_sha256"][:12]] for result in results)])
    for result in results:
        if result["by_type"]:
            say(f"\n  {result['split']} by type of task", style="bold")
            table(
                [("type", "episodes", "success", "95 % interval")]
                + [(kind, *_rate(found)) for kind, found in result["by_type"].items()]
            )


def _row(result: dict[str, Any]) -> list[str]:
    shares = [share(result[key]) for key in ("inadmissible_frac", "format_invalid_frac")]
    return [result["split"], result["role"], result["policy"], *_rate(result), f"{result['mean_turns']:.1f}", *shares]


def _rate(found: dict[str, Any]) -> tuple[str, str, str]:
    return str(found["num_episodes"]), share(found["success_rate"]), interval(found["ci95"])
