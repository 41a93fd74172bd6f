"""What verbs print with: tables that line up, and styles where the output is a terminal."""

import json
from collections.abc import Sequence
from typing import Any


def say(text: str = "", *, style: str = "") -> None:
    """Prints text, in a style of Rich such as "bold cyan" where standard output is a terminal."""
    from rich.console import Console
    from rich.text import Text

    # Made anew each time: it must see the standard output of now. Nothing wraps: lines are for grep, too.
    Console(highlight=False, soft_wrap=True).print(Text(text, style=style))


def table(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows, the first of which holds the titles, in columns of equal width."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        say(f"  {line}", style="" if number else "dim")


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Prints named facts, one a line, their texts below one another."""
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        say(f"  {name:<{width}}  {text}")


def share(fraction: float) -> str:
    """Gives 0.1234 as "12.3 %"."""
    return f"{100 * fraction:.1f} %"


def interval(ci95: Sequence[float]) -> str:
    """Gives (0.1, 0.25) as "[10.0, 25.0]", in percent."""
    low, high = ci95
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def as_json(content: Any) -> None:
    """Prints JSON."""
    print(json.dumps(content, indent=1, default=str))
