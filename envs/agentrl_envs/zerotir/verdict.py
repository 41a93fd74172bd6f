r"""Whether two mathematical answers are equal, by math-verify and by rules where its verdict is known to be wrong.

The source of this module is what runs in the sandbox, with math-verify and sympy loaded, one process a verdict: a
parser that hangs is killed, and no answer can influence another's verdict.

math-verify 0.9 rounds to 6 decimals, so that 1/2004! equals 1/2006!: what it calls equal must also be close in relative
terms. It compares ranges in one direction only, and \sqrt{1/n} with 1/\sqrt{n} not at all: both get a second look.
"""

import random
import re
from typing import Any

import math_verify
import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

_RELATIVE_ERROR = 1e-5
_DIGITS = 30
_NUM_POINTS = 16
_MIN_POINTS = 6
_REWRITTEN = (
    (re.compile(r"(?<=\d)(?:\\[,!;: ]|\{,\}|~)(?=\d{3}(?!\d))"), ""),  # 10\,000
    (re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([+-]?\d+)(?!\w)"), r"\1\\times 10^{\2}"),  # 4.5e33
    (re.compile(r"\\(?:mathrm|text|operatorname)\{([ei])\}"), r"\1"),  # the numbers e and i in upright letters
    (re.compile(r"\\sqrt\(([^()]*)\)"), r"\\sqrt{\1}"),
)
_GOES_ON = re.compile(r"\\[lc]?dots|\.\.\.|…")


def verdict(gold: str, answer: str) -> bool:
    """Tells whether an answer, cut out of its box, equals the right one. Slow or endless for some texts."""
    if _GOES_ON.search(gold) or _GOES_ON.search(answer):
        return "".join(gold.split()) == "".join(answer.split())  # a sequence that goes on is no expression
    try:
        right, given = parsed(gold), parsed(answer)
        if _verified(right, given):
            return not _differ(right[0], given[0])
        if _is_range(right[0]) and _is_range(given[0]):
            return _verified(given, right)
        return _equal_where_real(right[0], given[0])
    except (RecursionError, MemoryError, OverflowError, IndexError):
        return False  # nothing was read, or more than can be computed


def parsed(text: str) -> list[Any]:
    """Gives what math-verify reads in an answer: expressions and, last, the text itself."""
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    return math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=0)


def _verified(left: list[Any], right: list[Any]) -> bool:
    return bool(math_verify.verify(left, right, timeout_seconds=0))


def _differ(left: Any, right: Any) -> bool:
    """Tells whether two numbers are further apart than rounding explains."""
    if not _are_expressions(left, right) or left.free_symbols | right.free_symbols:
        return False
    numbers = [sympy.N(side.doit(), _DIGITS) for side in (left, right)]
    return all(number.is_number for number in numbers) and not _close(*numbers)


def _close(left: Any, right: Any) -> bool:
    if not (left.is_number and right.is_number):
        return False
    largest = max(abs(left), abs(right))
    return bool(largest == 0 or abs(left - right) / largest <= _RELATIVE_ERROR)


def _are_expressions(*parsed: Any) -> bool:
    return all(isinstance(one, sympy.Expr) for one in parsed)


def _is_range(parsed: Any) -> bool:
    """Tells whether an answer is an interval or inequalities."""
    if isinstance(parsed, sympy.Eq):
        return any(isinstance(side, sympy.Set) for side in parsed.args)
    return isinstance(parsed, sympy.Interval | sympy.Union | BooleanFunction | Relational)


def _equal_where_real(right: Any, given: Any) -> bool:
    r"""Tells whether two expressions agree at random points, of both signs, where the right one is real.

    So \sqrt{1/n} is 1/\sqrt{n}, but |x| is not x.
    """
    if not _are_expressions(right, given):
        return False
    symbols = sorted(right.free_symbols, key=str)
    if not symbols or right.free_symbols != given.free_symbols:
        return False
    rng = random.Random(0)
    num_real = 0
    for _ in range(_NUM_POINTS):
        point = {symbol: sympy.Float(rng.choice((-1, 1)) * rng.uniform(0.3, 2.7)) for symbol in symbols}
        expected = sympy.N(right.doit().subs(point), _DIGITS)
        if expected.is_real:
            num_real += 1
            if not _close(expected, sympy.N(given.doit().subs(point), _DIGITS)):
                return False
    return num_real >= _MIN_POINTS
