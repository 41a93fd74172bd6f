import pytest

from agentrl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline, ReinforcePPBaselineConfig
from agentrl.batch import make_batch
from tests.episodes import episode

RETURNS = [(1.0, 0, 3), (0.0, 0, 1), (2.0, 1, 1), (2.0, 1, 1)]  # return, group, tokens; centered: .5, -.5, 0, 0


def per_episode(**knobs: object) -> list[float]:
    batch = make_batch([episode(i, [n], episode_return=r, group=g) for i, (r, g, n) in enumerate(RETURNS)])
    config = ReinforcePPBaselineConfig.model_validate({"std_eps": 1e-12, **knobs})
    return ReinforcePPBaseline(config).advantages(batch)[:, 2].tolist()


def test_over_tokens_a_long_trajectory_weighs_more() -> None:
    mean = (3 * 0.5 - 0.5) / 6
    std = ((3 * (0.5 - mean) ** 2 + (-0.5 - mean) ** 2 + 2 * mean**2) / 6) ** 0.5
    assert per_episode() == pytest.approx([(x - mean) / std for x in (0.5, -0.5, 0, 0)])
    assert per_episode(std_ddof=1)[0] == pytest.approx((0.5 - mean) / (std * (6 / 5) ** 0.5))


def test_over_trajectories_each_counts_once() -> None:
    std = (2 * 0.25 / 4) ** 0.5
    assert per_episode(normalize_over="trajectories") == pytest.approx([0.5 / std, -0.5 / std, 0, 0])


def test_when_no_group_differs_nothing_is_learned() -> None:
    batch = make_batch([episode(i, [2], episode_return=0.1, group=i // 3) for i in range(6)])
    assert not ReinforcePPBaseline(ReinforcePPBaselineConfig()).advantages(batch).any()
