"""List the algorithms, or show one: its formula, its paper, and its knobs with their published defaults."""

import argparse
import inspect
import sys
from typing import Any

from agentrl.cli.parser import add_json
from agentrl.cli.terminal import as_json, say, table

EXAMPLE = "agentrl algorithms show grpo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    listing = actions.add_parser("list", help="every algorithm in a line", example="agentrl algorithms list")
    showing = actions.add_parser("show", help="one algorithm in full", example=EXAMPLE)
    showing.add_argument("name", help="as in algorithm.name")
    add_json(listing)
    add_json(showing)


def run(arguments: argparse.Namespace) -> int:
    """Lists or shows."""
    from agentrl import registry

    names = registry.names("algorithms") if arguments.action == "list" else [arguments.name]
    found = {name: _about(name) for name in names}
    if arguments.json:
        as_json(found if arguments.action == "list" else found[arguments.name])
    elif arguments.action == "list":
        table([("name", "what it is"), *((name, about["text"].splitlines()[0]) for name, about in found.items())])
    else:
        _print(found[arguments.name])
    return 0


def _about(name: str) -> dict[str, Any]:
    """Gives an algorithm's text, what it needs of a run, and its knobs."""
    from agentrl import registry
    from agentrl.config.document import inline
    from agentrl.config.schema import settings

    algorithm = registry.load("algorithms", name)
    knobs = [
        {"key": setting.key, "default": inline(setting.field.default), "help": setting.help}
        for setting in settings(algorithm.Config, "algorithm.")
        if setting.key != "algorithm.name"
    ]
    text = inspect.cleandoc(sys.modules[algorithm.__module__].__doc__ or name)
    return {"name": name, "text": text, "needs": sorted(algorithm.needs), "knobs": knobs}


def _print(about: dict[str, Any]) -> None:
    say(f"{about['name']}", style="bold cyan")
    say(about["text"])
    say(f"\nneeds   {', '.join(about['needs']) or 'nothing but trajectories'}\n")
    for knob in about["knobs"]:
        say(f"{knob['key']} = {knob['default']}", style="bold")
        say(f"    {knob['help']}")
