import pytest

from agentrl_envs.zerotir.sandbox import Limits, Result
from agentrl_envs.zerotir.tool_text import cut, tell


def told(result: Result, max_tokens: int = 100) -> str:
    return tell(result, Limits(wall_s=2.5, cpu_s=5, output_bytes=1000), max_tokens=max_tokens)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (Result("ok", "2\n", "", 1.0), "2"),
        (Result("ok", "2\n", "a warning\n", 1.0), "2"),
        (Result("ok", "", "a warning\n", 1.0), "a warning"),
        (Result("ok", "", "", 1.0), "no output (did you forget print?)"),
        (Result("ok", "\n", "", 1.0), "no output (did you forget print?)"),
        (Result("error", "2\n", "Traceback\nValueError: no\n", 1.0), "2\nTraceback\nValueError: no"),
        (Result("error", "", "", 1.0), "the program ended with an error status"),
        (Result("timeout", "2\n", "", 1.0), "2\ntimed out after 2.5 s"),
        (Result("cpu_limit", "", "", 1.0), "stopped after 5 s of CPU time"),
        (Result("output_limit", "x\n", "", 1.0), "x\nstopped: more than 1000 bytes of output"),
        (Result("killed", "", "", 1.0, signal=11), "killed by signal 11"),
    ],
)
def test_every_ending_is_told(result: Result, text: str) -> None:
    assert told(result) == text


def test_a_long_output_keeps_head_and_tail() -> None:
    assert cut("0123456789", 10) == "0123456789"
    assert cut("0123456789", 5) == "012\n... 5 tokens left out ...\n89"
    assert cut("0123456789", 1) == "0\n... 9 tokens left out ...\n"
    assert told(Result("ok", "9" * 500, "", 1.0), 4) == "99\n... 496 tokens left out ...\n99"


def test_tokens_are_estimated_by_letters_digits_and_signs() -> None:
    assert cut("abcdefgh", 2) == "abcdefgh"  # two pieces of four letters
    assert cut("abcdefghi", 2) == "abcd\n... 1 tokens left out ...\ni"
    assert cut("a b", 3) == "a b"
    assert cut("", 1) == ""
