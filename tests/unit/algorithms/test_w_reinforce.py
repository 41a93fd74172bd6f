import pytest

from agentrl.algorithms.w_reinforce import WReinforce, WReinforceConfig
from tests.unit.algorithms.steps import by_episode, outcomes, step


def test_successes_count_a_little_and_failures_fully() -> None:
    batch = outcomes([1.0, 0.0, 0.5, -1.0])
    assert by_episode(WReinforce(WReinforceConfig()).advantages(batch), batch) == [0.1, -1, 0.1, -1]
    nothing = WReinforce(WReinforceConfig(positive_weight=0.0))
    assert by_episode(nothing.advantages(batch), batch) == [0, -1, 0, -1]


def test_beta_minus_zero_learns_from_successes_only() -> None:
    algorithm = WReinforce(WReinforceConfig(positive_weight=1.0, beta_minus=0.0))
    found = step(algorithm, outcomes([1.0, 0.0], tokens=[2, 2]))
    assert found.gradient == [pytest.approx([-1 / 4] * 2), [0, 0]]
