"""What a run says before it starts and after it ends."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentrl import __version__
from agentrl.cli.terminal import facts, say

if TYPE_CHECKING:
    from agentrl.config import Loaded, RunConfig
    from agentrl.experiment import Run
    from agentrl.report import Run as Record

SPLITS = {"in_distribution": "in-distribution", "out_of_distribution": "out-of-distribution"}
TURNS_SHOWN = 6
CHARS_SHOWN = 160


def print_header(run: "Run", loaded: "Loaded", learning: tuple[str, str]) -> None:
    """Prints what is about to happen: the run and four lines, one of which, `learning`, is the caller's."""
    from agentrl import assembly
    from agentrl.trackers.console import compact

    config = loaded.config
    model = run.weights.policy.model
    parameter = next(model.parameters())
    size = f"{compact(sum(p.numel() for p in model.parameters()))} parameters"
    spec = assembly.env_factory(config)().spec
    turns = f", at most {spec.max_episode_steps} turns" if spec and spec.max_episode_steps else ""
    sets = [assembly.task_set(config, name) for name in (config.tasks.eval_in, config.tasks.eval_out) if name]
    splits = [f"{tasks.split} ({len(tasks)} tasks)" for tasks in sets]
    every = f", every {config.logging.eval_every} steps" if config.logging.eval_every else ""
    say(f"agentrl {__version__} · run {run.folder.path} · config {loaded.path}", style="bold")
    facts(
        [
            (
                "policy",
                f"{config.model.path}, {size}, {str(parameter.dtype).removeprefix('torch.')}, {parameter.device}",
            ),
            ("env", f"{config.env.id}{turns} · split {config.tasks.train}"),
            learning,
            ("evals", f"{' · '.join(splits)}{every}" if splits else "none"),
        ]
    )
    say()


def algorithm_line(config: "RunConfig") -> tuple[str, str]:
    """Gives what is learned by in a training run, and from how much."""
    episodes = f"{config.rollout.tasks_per_step} tasks x {config.rollout.group_size} episodes per step"
    return "algorithm", f"{config.algorithm.name}: {formula(config.algorithm.name)} · {episodes}"


def formula(algorithm: str) -> str:
    """Gives the first line of an algorithm's formula: the first indented line of its module's docstring."""
    from agentrl import registry

    text = sys.modules[registry.load("algorithms", algorithm).__module__].__doc__ or ""
    lines = text.splitlines()
    return next((line.strip() for line in lines if line.startswith("    ")), lines[0] if lines else "")


def print_results(folder: Path, following: str) -> None:
    """Writes the report; prints what the evaluations came to, one trajectory, and `following`, what to do next."""
    from agentrl.report import read_run, write_report

    record = read_run(folder)
    say()
    for role, label in SPLITS.items():
        found = record.evaluations_of(role)
        if found:
            first, last = found[0], found[-1]
            low, high = last.ci95
            start = f"{first.success_rate:.2f} -> " if first is not last else ""
            end = f"{last.success_rate:.2f} [{low:.2f}, {high:.2f}]"
            say(f"  eval {label:<20} {start}{end}   ({last.num_episodes} episodes)", style="bold cyan")
    _print_trajectory(record)
    report = write_report([folder], folder / "report.html")
    say()
    say(f"Report  {report}")
    say(f"Next    {following}")


def _print_trajectory(record: "Record") -> None:
    """Prints the best trajectory that was kept last, as many of its turns as are read at a glance."""
    from agentrl.report.summary import best_median_worst, read_rollouts
    from agentrl.report.view import outcome

    if not record.rollout_files:
        return
    best = best_median_worst(list(read_rollouts(record.rollout_files[-1].path))).get("best")
    if best is None:
        return
    say(f"\n  a trajectory ({outcome(best)}), the best of step {record.rollout_files[-1].step}")
    for turn in best.turns[:TURNS_SHOWN]:
        say(f"    env     {_cut(turn.observation)}", style="dim")
        say(f"    policy  {_cut(turn.action)}{'   success' if turn.info.get('success') else ''}")
    if len(best.turns) > TURNS_SHOWN:
        say(f"    ... {len(best.turns) - TURNS_SHOWN} more turns", style="dim")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CHARS_SHOWN else f"{line[: CHARS_SHOWN - 2]} …"
