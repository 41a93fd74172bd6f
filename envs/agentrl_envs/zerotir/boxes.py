r"""Final answers: the last \boxed{...} of a text, and what can be compared without algebra."""

import re

_BOX = re.compile(r"\\f?boxed\s*\{")
_THINKING_ENDS = "</think>"
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:(?:,|\\,|\{,\}|\\!,|,\\!|\\ |\s)\d{3})+")
_SEPARATOR = re.compile(r",|\\,|\{,\}|\\!|\\ |\s")
_INTEGER = re.compile(r"[+-]?\d+(?:\.0*)?")
_MAX_DIGITS = 4000
"""Longer numbers are not read, which would take quadratic time."""


def boxed_answer(text: str) -> str | None:
    r"""Gives what stands in the last \boxed{...} after the thinking part; None if there is none or it is not closed.

    A text that begins to think and does not end has no answer.
    """
    _, ended, answer = text.rpartition(_THINKING_ENDS)
    if not ended and "<think>" in text:
        return None
    boxes = list(_BOX.finditer(answer))
    return _braced(answer, boxes[-1].end()) if boxes else None


def as_integer(text: str) -> int | None:
    r"""Gives the integer that a text is, with or without $, thousands separators (10,000 or 10\,000) and a final .0."""
    text = text.strip().strip("$").strip()
    if _THOUSANDS.fullmatch(text):
        text = _SEPARATOR.sub("", text)
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    return int(text.partition(".")[0])


def _braced(text: str, start: int) -> str | None:
    r"""Gives the text from `start` to the brace that closes there; \{ and \} do not count."""
    depth, place = 1, start
    while place < len(text):
        if text[place] == "\\":
            place += 2
            continue
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place].strip()
        place += 1
    return None
