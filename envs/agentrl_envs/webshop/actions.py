"""Actions as language models write them: tags, code fences, capitals, quotes and chatter around `search[...]`."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

MAX_ANSWER_CHARS = 20_000
"""Longer answers are not read at all."""
MAX_QUERY_CHARS = 1_000
"""Longer searches are refused."""
_TAG = re.compile(r"<action>(.*?)(?:</action>|\Z)", re.S | re.I)
_VERB = r"(search|click)\s*\["
_AT_LINE_START = re.compile(rf"^[\s>*`\-]*(?:action\s*:\s*)?`*{_VERB}", re.I | re.M)
_ANYWHERE = re.compile(rf"\b{_VERB}", re.I)


class Action(NamedTuple):
    """What a customer wants to do."""

    verb: Literal["search", "click"]
    argument: str
    """Lower-cased, white space single, never empty."""


def parse(answer: str) -> Action | None:
    """Gives the action in an answer, or None when there is none.

    The first `<action>` counts, else the first action that starts a line, else the first anywhere.
    """
    if len(answer) > MAX_ANSWER_CHARS:
        return None
    tag = _TAG.search(answer)
    text = tag[1] if tag else answer
    found = _AT_LINE_START.search(text) or _ANYWHERE.search(text)
    if found is None:
        return None
    argument = _tidied(_inside(text[found.end() :]))
    verb = "search" if found[1].lower() == "search" else "click"
    if not argument or (verb == "search" and len(argument) > MAX_QUERY_CHARS):
        return None
    return Action(verb, argument)


def resolve(argument: str, names: Sequence[str]) -> str | None:
    """Gives which of the clickable names is meant: the same, or the only one with the same letters and digits."""
    same = [name for name in names if _tidied(name) == argument]
    if same:
        return same[0]
    wanted = _letters(argument)
    near = [name for name in names if wanted and _letters(name) == wanted]
    return near[0] if len(near) == 1 else None


def _inside(text: str) -> str:
    """Gives what stands before the bracket that closes, or before the last one of the line when they do not pair."""
    line = text.split("\n", 1)[0]
    depth = 1
    for position, character in enumerate(line):
        depth += (character == "[") - (character == "]")
        if depth == 0:
            return line[:position]
    return line.rpartition("]")[0]


def _tidied(text: str) -> str:
    return " ".join(text.lower().split())


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())
