"""Look at configurations: every value with its origin, every problem at once, how two differ, what a key means."""

import argparse

from agentrl.cli.parser import add_json, add_set
from agentrl.cli.terminal import as_json, say, table

EXAMPLE = "agentrl config show quickstart --set training.steps=7"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|validate|diff|explain")
    show = actions.add_parser("show", help="every value and where it is from", example=EXAMPLE)
    validate = actions.add_parser("validate", help="every problem at once", example="agentrl config validate my.yaml")
    diff = actions.add_parser("diff", help="what differs between two", example="agentrl config diff quickstart my.yaml")
    explain = actions.add_parser(
        "explain", help="what a key means", example="agentrl config explain engine.temperature"
    )
    show.add_argument("config", metavar="CONFIG", help="a configuration's name or file")
    add_set(show)
    add_json(show)
    validate.add_argument("configs", nargs="+", metavar="CONFIG", help="configurations' names or files")
    add_set(validate)
    diff.add_argument("configs", nargs=2, metavar="CONFIG", help="two configurations' names or files")
    add_json(diff)
    explain.add_argument("key", metavar="KEY", help="a key such as training.steps, or a section")


def run(arguments: argparse.Namespace) -> int:
    """Shows, validates, compares or explains."""
    from agentrl import config
    from agentrl.config.document import inline
    from agentrl.errors import ConfigError

    match arguments.action:
        case "explain":
            say(config.explain(arguments.key))
        case "show":
            rows = config.show(config.load_config(arguments.config, arguments.set))
            if arguments.json:
                as_json({key: {"value": value, "origin": origin} for key, value, origin in rows})
            else:
                table([("key", "value", "origin"), *((key, inline(value), origin) for key, value, origin in rows)])
        case "diff":
            a, b = (config.load_config(name) for name in arguments.configs)
            rows = config.diff(a, b)
            if arguments.json:
                as_json({key: [left, right] for key, left, right in rows})
            elif rows:
                table([("key", *arguments.configs), *((key, inline(left), inline(right)) for key, left, right in rows)])
            else:
                say("The two are the same.")
        case _:
            problems = []
            for name in arguments.configs:
                try:
                    config.load_config(name, arguments.set)
                    say(f"{name}: valid")
                except ConfigError as error:
                    problems.append(str(error))
            if problems:
                raise ConfigError("\n".join(problems))
    return 0
