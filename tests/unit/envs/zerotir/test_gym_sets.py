from pathlib import Path

import pytest

from agentrl.errors import EnvError
from agentrl_envs.zerotir.gym_sets import GymKnobs, GymProblems
from agentrl_envs.zerotir.sandbox import Sandbox

pytest.importorskip("reasoning_gym")
OUT = {"min_numbers": 5, "max_numbers": 5}


@pytest.fixture(scope="module")
def countdown() -> GymProblems:
    return GymProblems(GymKnobs(options={"min_numbers": 3, "max_numbers": 3}, options_out=OUT))


@pytest.mark.slow
def test_the_data_sets_own_answers_are_right_and_others_are_not(countdown: GymProblems, any_sandbox: Sandbox) -> None:
    del any_sandbox
    for split in ("train", "in_distribution", "out_of_distribution"):
        problem = countdown.problem(countdown.task_set(split).ids[0])
        assert countdown.is_right(problem, problem.answer)
        assert not countdown.is_right(problem, f"{problem.answer} + 1")
        assert not countdown.is_right(problem, "three")


@pytest.mark.slow
def test_an_answer_that_is_code_runs_in_the_sandbox_only(countdown: GymProblems, tmp_path: Path, any_sandbox) -> None:
    del any_sandbox
    problem = countdown.problem("train/000000000")
    attack = f"__import__('os').mkdir({str(tmp_path / 'made')!r})"
    assert not countdown.is_right(problem, attack)
    assert list(tmp_path.iterdir()) == []


def test_splits_are_disjoint_and_difficulty_tells_them_apart(countdown: GymProblems) -> None:
    def questions(split: str) -> set[str]:
        return {countdown.problem(task_id).question for task_id in countdown.task_set(split).first(20).ids}

    trained, held_out, out = map(questions, ("train", "in_distribution", "out_of_distribution"))
    assert len(trained | held_out) == 40
    assert not out & (trained | held_out)


def test_problems_are_repeatable(countdown: GymProblems) -> None:
    same = GymProblems(GymKnobs(options={"min_numbers": 3, "max_numbers": 3}, options_out=OUT))
    other = GymProblems(GymKnobs(seed=1, options_out=OUT))
    assert countdown.problem("train/000000007") == same.problem("train/000000007")
    assert countdown.task_set("train").sha256 == same.task_set("train").sha256 != other.task_set("train").sha256


@pytest.mark.parametrize(
    ("knobs", "problem"),
    [
        (GymKnobs(), "options_out: say what is out of distribution"),
        (GymKnobs(dataset="countdwn", options_out=OUT), "Did you mean 'countdown'"),
        (GymKnobs(options={"hard": True}, options_out=OUT), "dataset countdown: .*hard"),
        (GymKnobs(options={"min_numbers": -1}, options_out=OUT), "dataset countdown"),
    ],
)
def test_a_wrong_knob_is_told(knobs: GymKnobs, problem: str) -> None:
    with pytest.raises(EnvError, match=problem):
        GymProblems(knobs)
