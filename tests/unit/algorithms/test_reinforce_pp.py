import math
from dataclasses import replace

import pytest

from agentrl.algorithms.reinforce_pp import ReinforcePP, ReinforcePPConfig
from agentrl.batch import Batch, make_batch
from tests.episodes import episode
from tests.unit.algorithms.steps import by_token, filled, outcomes


def z_scores(rows: list[list[float]]) -> list[float]:
    values = [x for row in rows for x in row]
    mean = sum(values) / len(values)
    std = math.sqrt(sum((x - mean) ** 2 for x in values) / len(values))
    return [(x - mean) / std for x in values]


def advantages(config: ReinforcePPConfig, batch: Batch) -> list[float]:
    return [x for row in by_token(ReinforcePP(config).credit(batch), batch) for x in row]


def off_reference(batch: Batch, k1: list[list[float]]) -> Batch:
    """Gives the batch with these differences log pi_old - log pi_ref."""
    old = filled(batch, k1) * 0 - 1
    return replace(batch, old_logprobs=old, ref_logprobs=old - filled(batch, k1))


def test_the_kl_still_to_come_is_taken_off_the_return_before_the_normalization() -> None:
    k1 = [[0.5, -0.25, 1.0], [2.0]]
    batch = off_reference(outcomes([1.0, 0.0], tokens=[3, 1]), k1)
    expected = [[1 - 0.1 * (0.5 - 0.25 + 1), 1 - 0.1 * (-0.25 + 1), 1 - 0.1 * 1.0], [0 - 0.1 * 2]]
    assert advantages(ReinforcePPConfig(kl_coef=0.1), batch) == pytest.approx(z_scores(expected))


def process_rewarded(*, whole: bool) -> Batch:
    first = episode(0, [1, 2, 1], whole=whole)
    turns = tuple(replace(turn, reward=reward) for turn, reward in zip(first.turns, (0.5, -1.0, 2.0), strict=True))
    return make_batch([replace(first, turns=turns), episode(1, [1], episode_return=0.25)])


@pytest.mark.parametrize("whole", [True, False])
def test_the_reward_of_a_turn_reaches_its_own_tokens_and_those_before(whole: bool) -> None:
    config = ReinforcePPConfig(kl_estimator="none")
    expected = [[0.5 - 1 + 2, -1 + 2, -1 + 2, 2], [0.25]]
    assert advantages(config, process_rewarded(whole=whole)) == pytest.approx(z_scores(expected))


@pytest.mark.parametrize("whole", [True, False])
def test_gamma_discounts_each_action_token(whole: bool) -> None:
    config = ReinforcePPConfig(kl_estimator="none", gamma=0.5)
    to_go = [2.0]
    for reward in (-1.0, 0.0, 0.5):  # of the last token of turn 1, its first one, and turn 0's
        to_go.insert(0, reward + 0.5 * to_go[0])
    assert advantages(config, process_rewarded(whole=whole)) == pytest.approx(z_scores([to_go, [0.25]]))


def test_one_rollout_of_a_task_is_enough_and_the_kl_needs_the_reference() -> None:
    assert ReinforcePP(ReinforcePPConfig()).requires == {"reference"}
    assert ReinforcePP(ReinforcePPConfig(kl_estimator="none")).requires == frozenset()


def test_the_kl_in_the_reward_is_no_loss_of_its_own() -> None:
    assert not ReinforcePPConfig().has_kl_loss
    assert ReinforcePPConfig(kl_estimator="k2", kl_in="loss").has_kl_loss
