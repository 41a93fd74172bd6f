import re

from agentrl_envs.zerotir.arithmetic import Arithmetic, ArithmeticKnobs


def sums(source: Arithmetic, split: str, num: int) -> list[tuple[int, str, int, str]]:
    found = []
    for task_id in source.task_set(split).first(num).ids:
        problem = source.problem(task_id)
        match = re.fullmatch(r"Compute (\d+) ([-+*]) (\d+)\.", problem.question)
        assert match
        found.append((int(match[1]), match[2], int(match[3]), problem.answer))
    return found


def test_answers_are_right() -> None:
    for left, sign, right, answer in sums(Arithmetic(ArithmeticKnobs(operations=("+", "-", "*"))), "train", 200):
        assert int(answer) == {"+": left + right, "-": left - right, "*": left * right}[sign]


def test_numbers_have_the_lengths_that_are_asked_for() -> None:
    source = Arithmetic(ArithmeticKnobs(digits=(2, 4), digits_out=(5,)))
    for split, lengths in (("train", {2, 4}), ("in_distribution", {2, 4}), ("out_of_distribution", {5})):
        assert {
            len(str(number)) for left, _, right, _ in sums(source, split, 100) for number in (left, right)
        } == lengths


def test_no_sum_of_training_is_evaluated() -> None:
    source = Arithmetic(ArithmeticKnobs(digits=(1,), digits_out=(2,)))  # 81 products in all
    trained, held_out = (set(sums(source, split, 256)) for split in ("train", "in_distribution"))
    assert trained
    assert held_out
    assert not trained & held_out


def test_a_sum_is_the_same_every_time_and_the_manifest_tells_knobs_apart() -> None:
    one, same, other = (Arithmetic(ArithmeticKnobs(digits=digits)) for digits in ((3, 4), (3, 4), (3,)))
    assert sums(one, "train", 10) == sums(same, "train", 10)
    assert one.task_set("train").sha256 == same.task_set("train").sha256 != other.task_set("train").sha256


def test_an_answer_may_be_written_in_several_ways() -> None:
    source = Arithmetic(ArithmeticKnobs())
    problem = source.problem("train/000000000")
    number = int(problem.answer)
    assert source.is_right(problem, f"{number:,}")
    assert source.is_right(problem, f" ${number}.0$ ")
    assert not source.is_right(problem, str(number + 1))
    assert not source.is_right(problem, f"about {number}")
