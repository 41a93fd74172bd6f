import pytest

from agentrl.algorithms.remax import ReMax, ReMaxConfig
from agentrl.batch import make_batch
from tests.episodes import episode
from tests.unit.algorithms.steps import by_episode, outcomes, step


def test_the_baseline_is_the_greedy_episode_of_the_same_task() -> None:
    played = [episode(i, [2], episode_return=r, group=g) for i, (r, g) in enumerate([(1.0, 4), (0.0, 4), (0.5, 9)])]
    batch = make_batch(played, baselines={4: 0.25, 9: 1.0})
    assert by_episode(ReMax(ReMaxConfig()).advantages(batch), batch) == [0.75, -0.25, -0.5]


def test_a_task_whose_greedy_episode_failed_teaches_nothing() -> None:
    batch = make_batch([episode(i, [1], episode_return=1.0, group=i) for i in range(2)], baselines={1: 0.0})
    assert by_episode(ReMax(ReMaxConfig()).advantages(batch), batch) == [0, 1]


def test_the_log_probability_of_the_whole_answer_is_raised_without_ratio_or_clip() -> None:
    played = [episode(0, [2], episode_return=1.0), episode(1, [1], episode_return=0.0)]
    found = step(ReMax(ReMaxConfig()), make_batch(played, baselines={0: 0.5}), [[5.0, 0.1], [2.0]])
    assert found.gradient == [pytest.approx([-0.5 / 2] * 2), [pytest.approx(0.5 / 2)]]


def test_it_asks_for_greedy_episodes_and_does_not_run_without() -> None:
    assert ReMax(ReMaxConfig()).requires == {"greedy", "one_update"}
    with pytest.raises(AssertionError, match="greedy"):
        ReMax(ReMaxConfig()).advantages(outcomes([1.0]))
