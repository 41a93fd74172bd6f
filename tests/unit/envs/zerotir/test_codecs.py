import json

import pytest

from agentrl.errors import NotFound
from agentrl_envs.zerotir.codecs import ToolCall, codec

PROTOCOLS = ["zerotir", "retool", "hermes"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("code", ["print(1)", "x = '```'[0]\n\nprint(\"é\\n\")", "if x < 3:\n    print('<code>')"])
def test_what_is_written_is_found_again(protocol: str, code: str) -> None:
    one = codec(protocol)
    assert one.find(f"Let me see.\n{one.write(code)}\nDone.") in (ToolCall(code), ToolCall(f"{code}\n"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_the_first_call_counts(protocol: str) -> None:
    one = codec(protocol)
    found = one.find("\n".join([one.write("first"), one.output("invented"), one.write("second")]))
    assert found is not None
    assert found.code.strip() == "first"


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        ("zerotir", "```python\nprint(1)"),
        ("zerotir", "```\nprint(1)\n```"),
        ("zerotir", "```output\n1\n```"),
        ("zerotir", "`print(1)`"),
        ("retool", "<code>print(1)"),
        ("retool", "```python\nprint(1)\n```"),
        ("hermes", "<tool_call>{"),
        ("hermes", "I answer \\boxed{1}"),
    ],
)
def test_what_is_no_call_is_not_found(protocol: str, text: str) -> None:
    assert codec(protocol).find(text) is None


def test_code_tags_need_no_fence() -> None:
    assert codec("retool").find("<code>\nprint(1)\n</code>") == ToolCall("print(1)")
    assert codec("retool").find("<code>```py\nprint(1)\n```</code>") == ToolCall("print(1)\n")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("{'name': 1}", "not valid JSON"),
        (json.dumps({"name": "search", "arguments": {"code": "1"}}), "no tool 'search', only 'code_interpreter'"),
        (json.dumps({"name": "code_interpreter", "arguments": {"code": 1}}), "a tool call reads"),
        (json.dumps({"name": "code_interpreter"}), "a tool call reads"),
        ("[]", "a tool call reads"),
    ],
)
def test_a_malformed_tool_call_is_answered_with_what_is_wrong(call: str, problem: str) -> None:
    found = codec("hermes").find(f"<tool_call>\n{call}\n</tool_call>")
    assert found is not None
    assert problem in found.problem


def test_an_output_stands_in_the_protocols_fence() -> None:
    assert codec("zerotir").output("2") == "```output\n2\n```"
    assert codec("retool").output("2") == "<interpreter>\n2\n</interpreter>"
    assert codec("hermes").output("2") == "<tool_response>\n2\n</tool_response>"


def test_an_unknown_protocol_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFound, match="Did you mean 'hermes'"):
        codec("hermis")
