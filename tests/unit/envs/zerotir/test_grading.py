import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrl_envs.zerotir.grading import PRELOAD, GradingFailed, MathJudge, quick_verdict
from agentrl_envs.zerotir.sandbox import Result, Sandbox, SandboxUnavailable, Session

pytest.importorskip("math_verify")


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    try:
        with Sandbox(preload=PRELOAD) as sandbox:
            yield MathJudge(sandbox)
    except SandboxUnavailable as error:
        pytest.skip(str(error))


WRONGLY_JUDGED = [
    (r"\frac{1}{2004!}", r"\frac{1}{2006!}", False),
    (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}", False),
    (r"\frac{2^{2005}+1}{3\cdot 2^{2006}}", r"\frac{1}{3\cdot 2^{2006}}", False),
    (r"1-\frac{1}{\mathrm{e}}", r"1+\frac{1}{\mathrm{e}}", False),
    (r"1,2,\ldots,n", r"1,3,5,\ldots,2n-1", False),
    (r"1:2:3:\ldots", r"1:4:9:\ldots", False),
    (r"3*x-1*y+13=0", r"3x + 4y + 14=0", False),
    (r"4", r"4\sqrt(2)", False),
    (r"\sqrt{1/n}", r"\frac{1}{\sqrt{n}}", True),
    (r"(0, 12.5)", r"0 < x < 12.5", True),
    (r"m \in [\sqrt2,+\infty)", r"m \ge \sqrt2", True),
    (r"\dfrac{9}{7}", r"\frac97", True),
    (r"\left(3,\frac{\pi}{2}\right)", r"(3,\frac{\pi}{2})", True),
    (r"10\,000", r"10000", True),
    (r"4.5e33", r"4.5\times 10^{33}", True),
]
"""What math-verify 0.9.0 gets wrong, by its own issues and by ours."""
OTHERS = [
    (r"\frac{1}{2004!}", r"\frac{2005}{2005!}", True),
    (r"2^{-99}", r"\frac{1}{2^{99}}", True),
    (r"4\sqrt{2}", r"4\sqrt(2)", True),
    (r"1-\frac{1}{e}", r"1-\frac{1}{\mathrm{e}}", True),
    (r"|x|", r"x", False),
    (r"\sqrt{x^2}", r"x", False),
    (r"x+1", r"1+x", True),
    (r"\frac{1}{2}", r"0.5", True),
    (r"\frac{1}{3}", r"0.33", False),
    (r"\{1,2\}", r"\{2,1\}", True),
    (r"(1,2)", r"(2,1)", False),
    (r"2+3i", r"3i+2", True),
    (r"5", r"\text{I do not know}", False),
    (r"5", "", False),
    (r"5", r"\frac{", False),
    (r"42", r"__import__('os').getpid()", False),
]


@pytest.mark.parametrize(("gold", "answer", "right"), WRONGLY_JUDGED + OTHERS)
def test_an_answer_is_judged_right(gold: str, answer: str, right: bool, judge: MathJudge) -> None:
    assert judge.is_right(gold, answer) is right


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["9^{9^{9^{9}}}", "(10^7)!", r"\binom{10^8}{10^7}"])
def test_an_answer_that_never_ends_is_wrong(answer: str, judge: MathJudge) -> None:
    assert judge.is_right("7", answer) is False


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("7", "7", True),
        ("7", "8", False),
        ("7", "07", True),
        ("7", "+7.0", True),
        ("-7", "7", False),
        ("10000", "10,000", True),
        ("10000", "10{,}000", True),
        ("1234", "1,234", True),
        ("7", "$7$", True),
        ("7", "7.", True),
        (r"\frac{1}{2}", r"\dfrac{1}{2}", True),
        (r"\left( 3, 4 \right)", "(3,4)", True),
        ("7", "7.5", None),
        ("7", "x", None),
        (r"\lefteye", "eye", None),
    ],
)
def test_what_needs_no_algebra_is_decided_at_once(gold: str, answer: str, verdict: bool | None) -> None:
    assert quick_verdict(gold, answer) is verdict


class Broken:
    """A sandbox whose verifier does as told; it counts its calls."""

    def __init__(self, *results: Result) -> None:
        self.results = list(results)
        self.num_calls = 0

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        del code, wall_s
        self.num_calls += 1
        return self.results.pop(0)

    def session(self) -> Session:
        raise NotImplementedError

    def close(self) -> None: ...

    def __enter__(self) -> "Broken":
        return self

    def __exit__(self, *error: object) -> None: ...


CRASH = Result("error", "", "ImportError: no", wall_ms=1.0)
SLOW = Result("timeout", "", "", wall_ms=1.0)
EQUAL = Result("ok", "true\n", "", wall_ms=1.0)


def test_a_verifier_that_crashes_twice_gives_no_verdict() -> None:
    with pytest.raises(GradingFailed, match="ImportError: no"):
        MathJudge(Broken(CRASH, CRASH)).is_right("x", "y")


@pytest.mark.parametrize("first", [CRASH, SLOW])
def test_a_verifier_that_fails_once_is_asked_again(first: Result) -> None:
    assert MathJudge(Broken(first, EQUAL)).is_right("x", "y")


def test_a_verdict_is_remembered() -> None:
    runner = Broken(EQUAL)
    judge = MathJudge(runner)
    assert judge.is_right("x", "y")
    assert judge.is_right("x", "y")
    assert runner.num_calls == 1


def answers_in(file: Path) -> list[str]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line)["answer"] for line in lines]


@pytest.mark.data
def test_every_answer_of_every_set_is_right(data_dir: Path, judge: MathJudge) -> None:
    num = 0
    for file in sorted((data_dir / "math").glob("*.jsonl")):
        answers = answers_in(file)
        assert [answer for answer in answers if not judge.is_right(answer, answer)] == [], file.name
        num += len(answers)
    assert num == 23_950  # README.md of the data


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["hmmt_feb_2024", "hmmt_feb_2025", "minerva", "olympiadbench", "math500"])
def test_the_verifier_finds_every_answer_equal_to_itself(name: str, data_dir: Path) -> None:
    from agentrl_envs.zerotir.verdict import verdict

    answers = answers_in(data_dir / "math" / f"{name}.jsonl")
    assert [answer for answer in answers if not verdict(answer, answer)] == []
