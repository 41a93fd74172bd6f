"""Read trajectories: what the policy saw, what it did, how sure it was, and what came of it."""

import argparse
import sys
from pathlib import Path

from agentrl.cli.parser import whole
from agentrl.errors import NotFound

EXAMPLE = "agentrl view runs/latest --pick best"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("path", type=Path, metavar="RUN_OR_FILE", help="a run folder, or a file of trajectories")
    parser.add_argument(
        "--pick", choices=("best", "median", "worst", "all"), default="all", help="which; all by default"
    )
    parser.add_argument("--limit", type=whole(1), default=3, metavar="N", help="how many of all; 3 by default")
    parser.add_argument("--step", type=whole(0), metavar="N", help="a step of the run; the last one saved by default")


def run(arguments: argparse.Namespace) -> int:
    """Prints trajectories."""
    from agentrl.report.summary import rollout_paths, step_of
    from agentrl.report.view import render_rollouts

    path: Path = arguments.path
    if not path.exists():
        raise NotFound(f"{path}: no such run folder or file; 'runs/latest' is the newest run")
    if arguments.step is not None:
        saved = {step_of(file): file for file in rollout_paths(path)}
        if arguments.step not in saved:
            steps = ", ".join(map(str, saved)) or "none"
            raise NotFound(f"--step {arguments.step}: {path} has no trajectories of it; it has those of steps: {steps}")
        path = saved[arguments.step]
    print(render_rollouts(path, limit=arguments.limit, pick=arguments.pick, color=sys.stdout.isatty()))
    return 0
