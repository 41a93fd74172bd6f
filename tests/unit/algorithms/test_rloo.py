import pytest

from agentrl.algorithms.rloo import RLOO, RLOOConfig
from tests.unit.algorithms.steps import OLD, by_episode, outcomes, step


def test_the_baseline_is_the_mean_of_the_others() -> None:
    batch = outcomes([1.0, 0.0, 0.5, 4.0, 2.0, 9.0], groups=[0, 0, 0, 1, 1, 2])
    expected = [1 - 0.5 / 2, 0 - 1.5 / 2, 0.5 - 1 / 2, 4 - 2, 2 - 4]
    assert by_episode(RLOO(RLOOConfig()).advantages(batch), batch) == pytest.approx([*expected, 0])
    assert by_episode(RLOO(RLOOConfig(singleton="keep")).advantages(batch), batch) == pytest.approx([*expected, 9])


def test_the_log_probability_of_the_whole_answer_is_raised_without_ratio_or_clip() -> None:
    found = step(RLOO(RLOOConfig()), outcomes([1.0, 0.0], tokens=[2, 1]), [[5.0, 0.1], [2.0]])
    assert found.gradient == [pytest.approx([-1 / 2, -1 / 2]), [pytest.approx(1 / 2)]]
    assert step(RLOO(RLOOConfig()), outcomes([1.0, 0.0], tokens=[2, 1])).loss == pytest.approx(-(2 * OLD - OLD) / 2)


def test_it_compares_groups_and_without_a_ratio_makes_one_update_of_a_batch() -> None:
    assert RLOO(RLOOConfig()).requires == {"groups", "one_update"}
    assert RLOO(RLOOConfig(ratio="token")).requires == {"groups"}
