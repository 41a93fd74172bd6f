"""Warm a policy up: clone what the environment's own expert does, as the configuration's sft section says.

The result is a checkpoint folder that `model.path` of a training configuration may name.
"""

import argparse

from agentrl.cli.parser import add_set
from agentrl.cli.summary import print_header, print_results
from agentrl.cli.target import load_checked
from agentrl.cli.terminal import share
from agentrl.errors import ConfigError

EXAMPLE = "agentrl sft alfworld/tiny_sft --set sft.demonstrations=200"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("config", metavar="CONFIG", help="a configuration's name or file, with an sft section")
    add_set(parser)


def run(arguments: argparse.Namespace) -> int:
    """Clones."""
    from agentrl import experiment
    from agentrl.training.checkpoint import latest_checkpoint

    loaded = load_checked(arguments.config, arguments.set)
    settings = loaded.config.sft
    if settings is None:
        problem = "sft: there is no such section, so nothing says what to clone"
        raise ConfigError(
            f"{loaded.path}: {problem}; add 'sft: {{demonstrations: 1000, steps: 300}}' or use 'agentrl train'"
        )
    noise = f" with {share(settings.noise)} random actions" if settings.noise else ""
    line = "sft", f"{settings.demonstrations} demonstrations{noise} · {settings.steps} steps"
    folder = experiment.new_folder(loaded, command=arguments.command)
    with folder.logged():
        experiment.sft(loaded, folder, on_start=lambda run: print_header(run, loaded, line))
    print_results(folder.path, f"agentrl train CONFIG --set model.path={latest_checkpoint(folder.path)}")
    return 0
