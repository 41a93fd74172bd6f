import pytest

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import make_batch
from tests.episodes import episode


def per_episode(algorithm: GRPO, returns: list[tuple[float, int]]) -> list[float]:
    batch = make_batch([episode(i, [1], episode_return=r, group=g) for i, (r, g) in enumerate(returns)])
    return algorithm.advantages(batch)[:, 2].tolist()


def test_advantages_are_z_scores_within_the_group() -> None:
    returns = [(1.0, 0), (0.0, 1), (0.0, 0), (1.0, 1), (0.0, 1), (0.0, 1)]
    third = 1 / 3**0.5  # deviations .75 and -.25; variance (.5625 + 3 * .0625) / 3 = .25
    expected = [2**-0.5, -0.5, -(2**-0.5), 1.5, -0.5, -0.5]
    assert per_episode(GRPO(GRPOConfig(std_eps=1e-12)), returns) == pytest.approx(expected)
    ddof0 = per_episode(GRPO(GRPOConfig(std_eps=1e-12, std_ddof=0)), returns)
    assert ddof0 == pytest.approx([1, -third, -1, 3 * third, -third, -third])


def test_a_group_with_one_return_for_all_and_a_group_of_one_get_nothing() -> None:
    assert per_episode(GRPO(GRPOConfig()), [(0.1, 0), (0.1, 0), (0.1, 0), (1.0, 1)]) == [0, 0, 0, 0]


def test_it_compares_groups_and_needs_a_reference_only_for_its_kl() -> None:
    assert GRPO(GRPOConfig()).requires == {"groups", "reference"}
    assert GRPO(GRPOConfig(kl_estimator="none")).requires == {"groups"}
