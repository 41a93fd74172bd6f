"""Arguments: argparse with messages like everywhere else in agentrl, and the arguments that several verbs share."""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from agentrl.errors import AgentRLError, did_you_mean


class Parser(argparse.ArgumentParser):
    """A parser whose help ends with one example and whose errors name the nearest thing that exists."""

    def __init__(self, *, example: str = "", **settings: Any) -> None:
        epilog = f"example:\n  {example}" if example else None
        super().__init__(
            epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings
        )

    def parse(self, args: Sequence[str]) -> argparse.Namespace:
        """Gives the arguments; like `parse_args`, but unknown ones get a suggestion.

        Raises:
            AgentRLError: they are wrong.
        """
        parsed, unknown = self.parse_known_args(args)
        if unknown:
            option = unknown[0].partition("=")[0]
            hint = did_you_mean(option, _options(self)) if option.startswith("-") else ""
            self.error(f"unexpected '{option}'.{hint}")
        return parsed

    def error(self, message: str) -> NoReturn:
        """Raises AgentRLError in place of leaving the process."""
        stop = "" if message.endswith((".", "?")) else ";"
        raise AgentRLError(f"{self.prog.removeprefix('agentrl ')}: {message}{stop} see '{self.prog} --help'")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"no '{value}'.{did_you_mean(str(value), names)} One of {', '.join(names)}"
            )


def add_set(parser: argparse.ArgumentParser) -> None:
    """Adds --set, which may be repeated and takes several values."""
    text = (
        "change settings of the configuration, e.g. training.steps=10; 'agentrl config explain KEY' says what they mean"
    )
    parser.add_argument("--set", action="extend", nargs="+", default=[], metavar="KEY=VALUE", help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds --json."""
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read, and nothing else")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds --option, the keyword arguments of an environment."""
    text = "an option of the environment, e.g. games=official; 'agentrl envs show ID' lists them"
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help=text)


def read_options(options: Sequence[str]) -> dict[str, Any]:
    """Gives the environment options of --option, their values read as YAML."""
    from agentrl.config.document import parse

    found: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise AgentRLError(f"--option {option}: expected key=value, such as games=official")
        found[key] = parse(f"value: {value}", lambda line, option=option: f"--option {option}").tree["value"]
    return found


def whole(least: int) -> Callable[[str], int]:
    """Gives a reader of whole numbers of `least` or more."""

    def read(text: str) -> int:
        if not text.lstrip("-").isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of {least} or more, not '{text}'")
        return int(text)

    return read


def real(least: float, most: float = math.inf) -> Callable[[str], float]:
    """Gives a reader of numbers from `least` to `most`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            up_to = "" if most == math.inf else f" to {most:g}"
            raise argparse.ArgumentTypeError(
                f"expected a number from {least:g}{up_to}{' up' * (not up_to)}, not '{text}'"
            )
        return value

    return read


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)
