from typing import Any

import pytest

from agentrl.algorithms._base import spread
from agentrl.algorithms._groups import returns_and_groups
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from tests.unit.algorithms.steps import by_episode, by_token, filled, outcomes

RETURNS, TOKENS = [1.0, 0.0, 4.0], [1, 2, 1]


def found(**knobs: Any) -> list[float]:
    """Gives the normalized returns of three episodes, the second of which has two tokens."""
    batch = outcomes(RETURNS, tokens=TOKENS)
    config = NormalizedConfig(name="test", **knobs)
    return by_episode(normalized(spread(returns_and_groups(batch)[0], batch), batch, config), batch)


def test_over_tokens_a_long_episode_weighs_more() -> None:
    mean = (1 + 0 + 0 + 4) / 4
    variance = ((1 - mean) ** 2 + 2 * mean**2 + (4 - mean) ** 2) / 4
    assert found() == pytest.approx([(r - mean) / variance**0.5 for r in RETURNS])
    assert found(std_ddof=1) == pytest.approx([(r - mean) / (variance * 4 / 3) ** 0.5 for r in RETURNS])


def test_over_trajectories_each_counts_once() -> None:
    mean = 5 / 3
    variance = sum((r - mean) ** 2 for r in RETURNS) / 3
    over = {"normalize_over": "trajectories"}
    assert found(**over) == pytest.approx([(r - mean) / variance**0.5 for r in RETURNS])
    assert found(**over, std_ddof=1) == pytest.approx([(r - mean) / (variance * 3 / 2) ** 0.5 for r in RETURNS])


def test_over_trajectories_an_episode_counts_by_the_mean_of_its_tokens() -> None:
    batch = outcomes([0.0, 0.0], tokens=[2, 1])
    values = filled(batch, [[1.0, 3.0], [4.0]]).nan_to_num()
    variance = ((1 - 3) ** 2 / 2 + (3 - 3) ** 2 / 2 + (4 - 3) ** 2) / 2  # around the mean of 2 and 4
    config = NormalizedConfig(name="test", normalize_over="trajectories", std_eps=1e-12)
    first, second = by_token(normalized(values, batch, config), batch)
    assert [*first, *second] == pytest.approx([x / variance**0.5 for x in (-2, 0, 1)])


@pytest.mark.parametrize(
    ("where", "divisor"),
    [("std", 0.5 + 0.3), ("variance", (0.25 + 0.3) ** 0.5), ("least_variance", 0.3**0.5)],
)
def test_epsilon_can_stand_in_three_places(where: str, divisor: float) -> None:
    batch = outcomes([1.0, 0.0])  # mean 1/2, variance 1/4
    config = NormalizedConfig.model_validate({"name": "test", "std_eps": 0.3, "std_eps_on": where})
    values = spread(returns_and_groups(batch)[0], batch)
    assert by_episode(normalized(values, batch, config), batch) == pytest.approx([0.5 / divisor, -0.5 / divisor])


@pytest.mark.parametrize("reward", [0.1, 1 / 3, 0.7])
@pytest.mark.parametrize("over", ["tokens", "trajectories"])
def test_equal_values_become_exactly_nothing(reward: float, over: str) -> None:
    batch = outcomes([reward] * 7, tokens=[1, 2, 3, 1, 2, 3, 5])
    config = NormalizedConfig.model_validate({"name": "test", "normalize_over": over})
    assert not normalized(spread(returns_and_groups(batch)[0], batch), batch, config).any()


def test_nothing_is_said_of_tokens_off_the_mask_and_of_no_tokens() -> None:
    batch = outcomes(RETURNS, tokens=TOKENS)
    values = normalized(spread(returns_and_groups(batch)[0], batch), batch, NormalizedConfig(name="test"))
    assert not values[~batch.action_mask].any()
    empty = outcomes([])
    assert not normalized(values[:0, :0], empty, NormalizedConfig(name="test")).any()
