"""Train a policy as a configuration says, evaluate it, and write a report.

A run that was interrupted goes on from its newest checkpoint with --resume, bit for bit as if it had never stopped.
"""

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from agentrl.cli.parser import add_set, whole
from agentrl.cli.summary import algorithm_line, print_header, print_results
from agentrl.cli.target import check_run, load_checked
from agentrl.cli.terminal import say
from agentrl.errors import AgentRLError

if TYPE_CHECKING:
    from agentrl.config import Loaded
    from agentrl.run_folder import RunFolder

EXAMPLE = "agentrl train quickstart --set training.steps=20 training.seed=1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "config", nargs="?", metavar="CONFIG", help="a configuration's name or file; left out with --resume"
    )
    add_set(parser)
    parser.add_argument("--steps", type=whole(0), metavar="N", help="short for --set training.steps=N")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="run folder to go on with, e.g. runs/latest")
    parser.add_argument(
        "--dry-run", action="store_true", help="build everything, play and learn one step, keep nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    """Trains."""
    from agentrl import experiment
    from agentrl.training.distributed import Ranks

    if arguments.resume:
        loaded, folder = _resumed(arguments)
    elif not arguments.config:
        raise AgentRLError(
            "train: name a configuration, or a run with --resume; 'agentrl doctor' lists the shipped ones"
        )
    else:
        loaded = load_checked(arguments.config, [*arguments.set, *_steps(arguments)])
        if arguments.dry_run:
            return _dry_run(loaded, arguments)
        folder = experiment.new_folder(loaded, command=arguments.command)
    line = algorithm_line(loaded.config)
    try:
        with folder.logged():
            experiment.train(
                loaded, folder, resume=bool(arguments.resume), on_start=lambda run: print_header(run, loaded, line)
            )
    except KeyboardInterrupt:
        if any(folder.path.glob("checkpoints/step_*")):
            say(f"\nStopped. Go on with: agentrl train --resume {folder.path}")
        raise
    if Ranks().is_main:
        print_results(folder.path, f"agentrl view {folder.path} · agentrl eval {folder.path} --split all")
    return 0


def _steps(arguments: argparse.Namespace) -> list[str]:
    return [] if arguments.steps is None else [f"training.steps={arguments.steps}"]


def _resumed(arguments: argparse.Namespace) -> "tuple[Loaded, RunFolder]":
    """Gives the configuration and the folder of a run that goes on."""
    from agentrl import experiment
    from agentrl.report.summary import step_of
    from agentrl.training.checkpoint import latest_checkpoint

    if arguments.config or arguments.dry_run:
        problem = "a run that goes on has its own configuration, and learns"
        raise AgentRLError(f"train --resume: {problem}; leave out CONFIG and --dry-run")
    for text in arguments.set:
        if text.partition("=")[0] != "training.steps":
            problem = "a run that goes on keeps its settings, all but training.steps"
            raise AgentRLError(f"--set {text}: {problem}; leave it out, or start a new run")
    check_run(arguments.resume)
    folder = experiment.open_folder(arguments.resume)
    loaded = load_checked(str(folder.path / "config.yaml"), [*arguments.set, *_steps(arguments)])
    steps, done = loaded.config.training.steps, step_of(latest_checkpoint(folder.path))
    if done > steps:
        raise AgentRLError(f"training.steps: {steps}, but {folder.path} has done {done}; ask for more")
    folder.extend(loaded)
    return loaded, folder


def _dry_run(loaded: "Loaded", arguments: argparse.Namespace) -> int:
    """Plays and learns one step in a folder that is thrown away."""
    from agentrl import experiment
    from agentrl.report import read_run

    with tempfile.TemporaryDirectory() as folder:
        small = ["training.steps=1", f"logging.run_dir={folder}", "logging.trackers=[console, jsonl]"]
        unmeasured = ["tasks.eval_in=null", "tasks.eval_out=null"]
        one_step = load_checked(arguments.config, [*arguments.set, *small, *unmeasured])
        written = experiment.new_folder(one_step, command=arguments.command)
        experiment.train(
            one_step, written, on_start=lambda run: print_header(run, loaded, algorithm_line(loaded.config))
        )
        run = read_run(written.path)
        episodes = loaded.config.rollout.tasks_per_step * loaded.config.rollout.group_size
        hours = run.total_s * loaded.config.training.steps / 3600
        say(f"\nDry run: {episodes} episodes and an update in {run.total_s:.1f} s, nothing kept.")
        say(f"All {loaded.config.training.steps} steps at this pace: {hours:.1f} h, evaluations aside.")
    return 0
