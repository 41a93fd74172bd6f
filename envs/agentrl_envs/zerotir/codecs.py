"""How a policy calls Python in its text, and how the output is put to it: one codec for each protocol.

Only the first call of a turn counts, and nothing that follows it in the turn is read: a policy that goes on writing can
invent an output, but never profit from it.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from agentrl.errors import NotFound, did_you_mean

TOOL_NAME = "code_interpreter"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a policy wants to run."""

    code: str = ""
    """Python source."""
    problem: str = ""
    """Why there is no code in what looks like a call; empty for a good call."""


@dataclass(frozen=True)
class Codec:
    """The texts of one protocol."""

    find: Callable[[str], ToolCall | None]
    """Gives the first call in what a policy wrote in a turn; None when there is none."""
    before: str
    """What stands before a tool's output."""
    after: str
    """What stands after it."""
    write: Callable[[str], str]
    """Gives the text that calls the tool with some code: what a demonstration says."""

    def output(self, text: str) -> str:
        """Gives the observation that holds a tool's output."""
        return f"{self.before}{text}{self.after}"


def codec(name: str) -> Codec:
    """Gives the codec of a protocol.

    Raises:
        NotFound: no such protocol; names those there are.
    """
    if name not in _CODECS:
        raise NotFound(f"no protocol {name!r}.{did_you_mean(name, _CODECS)} There are: {', '.join(_CODECS)}.")
    return _CODECS[name]


_FENCE = re.compile(r"```(?:python|py)[ \t]*\n(.*?)```(?![^\s<])", re.S)
_CODE_TAG = re.compile(r"<code>(.*?)</code>", re.S)
_TOOL_TAG = re.compile(r"<tool_call>(.*?)</tool_call>", re.S)


def _find_fence(text: str) -> ToolCall | None:
    found = _FENCE.search(text)
    return ToolCall(found[1]) if found else None


def _find_code_tag(text: str) -> ToolCall | None:
    found = _CODE_TAG.search(text)
    if not found:
        return None
    fenced = _FENCE.search(found[1])
    return ToolCall(fenced[1] if fenced else found[1].strip("\n"))


def _find_tool_tag(text: str) -> ToolCall | None:
    found = _TOOL_TAG.search(text)
    if not found:
        return None
    try:
        call = json.loads(found[1])
    except json.JSONDecodeError as error:
        return ToolCall(problem=f"the tool call is not valid JSON: {error}")
    match call:
        case {"name": name, "arguments": {"code": str(code)}} if name == TOOL_NAME:
            return ToolCall(code)
        case {"name": str(name)} if name != TOOL_NAME:
            return ToolCall(problem=f"there is no tool {name!r}, only {TOOL_NAME!r}")
        case _:
            form = json.dumps({"name": TOOL_NAME, "arguments": {"code": "..."}})
            return ToolCall(problem=f"a tool call reads {form}")


_CODECS: Mapping[str, Codec] = MappingProxyType(
    {
        "zerotir": Codec(_find_fence, "```output\n", "\n```", lambda code: f"```python\n{code}\n```"),
        "retool": Codec(
            _find_code_tag,
            "<interpreter>\n",
            "\n</interpreter>",
            lambda code: f"<code>\n```python\n{code}\n```\n</code>",
        ),
        "hermes": Codec(
            _find_tool_tag,
            "<tool_response>\n",
            "\n</tool_response>",
            lambda code: f"<tool_call>\n{json.dumps({'name': TOOL_NAME, 'arguments': {'code': code}})}\n</tool_call>",
        ),
    }
)
