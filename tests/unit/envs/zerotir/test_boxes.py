import pytest

from agentrl_envs.zerotir.boxes import as_integer, boxed_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{5}.", "5"),
        (r"\boxed{7} no wait \boxed{5}", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed { 5 }", "5"),
        (r"\fbox{5}", None),
        (r"\fboxed{5}", "5"),
        ("5", None),
        (r"\boxed{5", None),
        (r"\boxed{5} and \boxed{6", None),
        (r"<think>\boxed{4}</think>\boxed{5}", "5"),
        (r"<think>\boxed{4}</think> 5", None),
        (r"<think>\boxed{4}", None),
        (r"\boxed{4}</think>\boxed{5}", "5"),
    ],
)
def test_the_answer_is_in_the_last_box_after_thinking(text: str, answer: str | None) -> None:
    assert boxed_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("7", 7),
        ("-7", -7),
        (" $007$ ", 7),
        ("7.00", 7),
        ("10,000", 10_000),
        (r"10\,000", 10_000),
        (r"1{,}234{,}567", 1_234_567),
        ("10 000", 10_000),
        ("10,00", None),
        ("1,2", None),
        ("7.5", None),
        ("1/2", None),
        ("", None),
        ("x", None),
        ("9" * 4001, None),
    ],
)
def test_an_integer_is_read_however_it_is_written(text: str, integer: int | None) -> None:
    assert as_integer(text) == integer
