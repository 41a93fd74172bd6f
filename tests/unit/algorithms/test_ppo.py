from dataclasses import replace

import pytest
import torch

from agentrl.algorithms._base import CriticSettings
from agentrl.algorithms.ppo import PPO, PPOConfig
from agentrl.batch import Batch, make_batch
from tests.episodes import episode
from tests.unit.algorithms.steps import by_token, filled, outcomes

VALUES = [0.5, 0.25, 0.75]
GAMMA, LAMBDA = 0.9, 0.8
RAW = [0.0, 0.0, 1 - 0.75]  # advantages, from the last token on
RAW[1] = (GAMMA * 0.75 - 0.25) + GAMMA * LAMBDA * RAW[2]
RAW[0] = (GAMMA * 0.25 - 0.5) + GAMMA * LAMBDA * RAW[1]


def two_turns(*, whole: bool) -> Batch:
    """Gives an episode of two tokens, what the environment says, one more token and the reward 1."""
    batch = make_batch([episode(0, [2, 1], episode_return=1.0, whole=whole)])
    return replace(batch, values=filled(batch, [VALUES]))


@pytest.mark.parametrize("whole", [True, False])
def test_advantages_skip_what_the_environment_says(whole: bool) -> None:
    batch = two_turns(whole=whole)
    algorithm = PPO(PPOConfig(gamma=GAMMA, gae_lambda=LAMBDA, normalize=False))
    assert by_token(algorithm.advantages(batch), batch) == [pytest.approx(RAW)]


@pytest.mark.parametrize("normalize", [True, False])
def test_the_critics_target_is_the_raw_advantage_plus_its_old_value(normalize: bool) -> None:
    batch = two_turns(whole=True)
    targets = PPO(PPOConfig(gamma=GAMMA, gae_lambda=LAMBDA, normalize=normalize)).value_targets(batch)
    assert by_token(targets, batch) == [pytest.approx([a + v for a, v in zip(RAW, VALUES, strict=True)])]
    assert not targets[~batch.action_mask].any()


def test_advantages_are_normalized_over_all_tokens_of_the_batch() -> None:
    batch = outcomes([1.0, 0.0], tokens=[3, 1])
    batch = replace(batch, values=torch.zeros_like(batch.rollout_logprobs))
    found = by_token(PPO(PPOConfig(gae_lambda=1.0)).advantages(batch), batch)  # raw: 1, 1, 1 and 0
    std = (3 * (1 / 4) ** 2 + (3 / 4) ** 2) ** 0.5 / 2
    assert found == [pytest.approx([1 / 4 / std] * 3), [pytest.approx(-3 / 4 / std)]]


def test_a_kl_in_the_reward_lowers_advantages_and_targets() -> None:
    batch = two_turns(whole=True)
    k1 = [0.5, 0.0, 1.0]
    old = filled(batch, [[-1.0] * 3])
    batch = replace(batch, values=filled(batch, [[0.0] * 3]), old_logprobs=old, ref_logprobs=old - filled(batch, [k1]))
    config = PPOConfig(gae_lambda=1.0, normalize=False, kl_estimator="k1", kl_coef=0.1, kl_in="reward")
    expected = [1 - 0.1 * 1.5, 1 - 0.1 * 1.0, 1 - 0.1 * 1.0]
    assert by_token(PPO(config).credit(batch), batch) == [pytest.approx(expected)]
    assert by_token(PPO(config).value_targets(batch), batch) == [pytest.approx(expected)]


def test_it_needs_a_critic_and_says_how_to_train_it() -> None:
    algorithm = PPO(PPOConfig(value_clip=0.3, critic_lr_scale=5.0))
    assert algorithm.requires == {"values"}
    assert algorithm.critic == CriticSettings(value_clip=0.3, lr_scale=5.0)


def test_choices_of_a_normalization_that_is_off_are_problems() -> None:
    config = PPOConfig(normalize=False, normalize_over="trajectories", std_ddof=1, std_eps=0.1, std_eps_on="variance")
    what = "no effect without normalize; leave it out, or set normalize"
    assert config.problems() == [(knob, what) for knob in ("normalize_over", "std_ddof", "std_eps", "std_eps_on")]
    assert PPOConfig(normalize=False).problems() == PPOConfig(std_ddof=1).problems() == []
