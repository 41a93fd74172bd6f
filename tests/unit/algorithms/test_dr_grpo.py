import pytest

from agentrl.algorithms.dr_grpo import DrGRPO, DrGRPOConfig
from tests.unit.algorithms.steps import by_episode, outcomes, step


def test_only_the_mean_of_the_group_is_taken_off() -> None:
    batch = outcomes([2.0, 0.5, 1.0, 7.0], groups=[0, 0, 1, 2])
    assert by_episode(DrGRPO(DrGRPOConfig()).advantages(batch), batch) == [0.75, -0.75, 0, 0]
    kept = DrGRPO(DrGRPOConfig(singleton="keep"))
    assert by_episode(kept.advantages(batch), batch) == [0.75, -0.75, 1, 7]


def test_every_token_weighs_the_same_constant_however_long_its_answer() -> None:
    found = step(DrGRPO(DrGRPOConfig(horizon=10)), outcomes([1.0, 0.0], tokens=[3, 1]))
    assert found.gradient == [pytest.approx([-0.5 / (2 * 10)] * 3), [pytest.approx(0.5 / (2 * 10))]]


def test_another_aggregate_asks_to_take_the_horizon_back() -> None:
    (problem,) = DrGRPOConfig(aggregate="token_mean").problems()
    assert problem == ("horizon", "no effect on aggregate token_mean; set seq_mean_token_sum_norm, or null")
    assert DrGRPOConfig(aggregate="token_mean", horizon=None).problems() == []
