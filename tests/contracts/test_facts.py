"""What the papers prove of the formulas, held against the functions that compute them here."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm, spread
from agentrl.algorithms._groups import centered, group_std, returns_and_groups
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.reinforce_pp import ReinforcePP, ReinforcePPConfig
from agentrl.batch import Batch, make_batch
from agentrl.loss import LossConfig, kl_estimate, policy_loss, token_weights
from tests.episodes import episode

SIGMA = 1.5
FIRST = 3.0
"""Noise of the first reward of every group, which is given."""


def groups_of(size: int, num: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Gives Gaussian rewards of groups whose first reward is `FIRST`, and their group numbers."""
    rewards = SIGMA * torch.randn(num, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rewards[:, 0] = FIRST
    return rewards.flatten(), torch.arange(num).repeat_interleave(size)


@pytest.mark.parametrize("size", [4, 8])
def test_a_groups_variance_grows_with_the_reward_that_it_is_to_scale(size: int) -> None:
    rewards, group = groups_of(size, 50_000)
    found = group_std(rewards, group, ddof=0)[::size].square()
    expected = (size - 1) ** 2 / size**2 * SIGMA**2 + (size - 1) / size**2 * FIRST**2
    error = float(found.std()) / math.sqrt(len(found))
    assert error < 0.01
    assert float(found.mean()) == pytest.approx(expected, abs=4 * error)
    assert expected > (size - 1) / size * SIGMA**2 + 4 * error  # what it is on average over the first reward


def test_the_bias_of_local_normalization_shrinks_with_the_size_of_what_is_normalized() -> None:
    biases = []
    for size in (4, 16, 64, 256):
        rewards, group = groups_of(size, 160_000 // size)
        scaled = centered(rewards, group) / group_std(rewards, group, ddof=0)
        biases.append(FIRST / SIGMA - float(scaled[::size].mean()))  # of the advantage it should have
    assert biases == sorted(biases, reverse=True)
    assert biases[0] >= FIRST / SIGMA - math.sqrt(3)  # no z-score of four numbers is larger
    assert abs(biases[-1]) < biases[0] / 10


def batch_of(rewards: list[float]) -> Batch:
    return make_batch([episode(i, [1], episode_return=reward) for i, reward in enumerate(rewards)])


def test_global_normalization_is_that_of_one_group_as_large_as_the_batch() -> None:
    batch = batch_of(groups_of(32, 1)[0].tolist())
    returns, group = returns_and_groups(batch)
    expected = centered(returns, group) / group_std(returns, group, ddof=0)
    found = normalized(spread(returns, batch), batch, NormalizedConfig(name="test", std_eps=1e-12))
    torch.testing.assert_close(found, spread(expected, batch), rtol=1e-9, atol=1e-12)


WORDS = 7


def tables() -> tuple[Tensor, Tensor, Tensor]:
    """Gives logits of a policy over a small vocabulary, and log-probabilities of a reference and of an older policy."""
    logits, reference, old = torch.randn(3, WORDS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return logits.requires_grad_(), reference.log_softmax(0)[None], old.log_softmax(0)[None]


def expected_gradient(estimate: Callable[[Tensor], Tensor], logits: Tensor, sampler: Tensor | None = None) -> Tensor:
    """Gives the gradient of a token's loss, in expectation over the tokens that are sampled; by the policy itself.

    Every token of the vocabulary stands once in the row, with its probability as its weight.
    """
    logprobs = logits.log_softmax(0)[None]
    weights = (logprobs if sampler is None else sampler).exp().detach()
    (found,) = torch.autograd.grad((weights * estimate(logprobs)).sum(), logits)
    return found


def kl_loss(reference: Tensor, old: Tensor | None = None, **knobs: Any) -> Callable[[Tensor], Tensor]:
    """Gives a function from log-probabilities to the KL loss of each token."""
    config, ones = LossConfig(kl_coef=1.0, **knobs), torch.ones(1, 1, dtype=torch.bool)

    def loss(logprobs: Tensor) -> Tensor:
        pairs = zip(logprobs[0], reference[0], (logprobs.detach() if old is None else old)[0], strict=True)
        return torch.stack(
            [
                policy_loss(
                    config,
                    logprobs=current.reshape(1, 1),
                    old_logprobs=before.reshape(1, 1),
                    advantages=torch.zeros(1, 1),
                    action_mask=ones,
                    keep=ones,
                    weights=torch.ones(1, 1),
                    ref_logprobs=ref.reshape(1, 1),
                ).loss
                for current, ref, before in pairs
            ]
        )[None]

    return loss


def kl_gradient(logits: Tensor, reference: Tensor, *, forward: bool) -> Tensor:
    """Gives the gradient of KL(ref || pi), or of KL(pi || ref), over the whole vocabulary."""
    logprobs = logits.log_softmax(0)[None]
    first, second = (reference, logprobs) if forward else (logprobs, reference)
    (found,) = torch.autograd.grad((first.exp() * (first - second)).sum(), logits)
    return found


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


def test_k2_as_a_loss_has_the_gradient_of_the_reverse_kl() -> None:
    logits, reference, _ = tables()
    found = expected_gradient(kl_loss(reference, kl_estimator="k2"), logits)
    assert_close(found, kl_gradient(logits, reference, forward=False))


def test_k3_as_a_loss_has_the_gradient_of_the_forward_kl() -> None:
    logits, reference, _ = tables()
    found = expected_gradient(kl_loss(reference, kl_estimator="k3"), logits)
    assert_close(found, kl_gradient(logits, reference, forward=True))
    assert (found - kl_gradient(logits, reference, forward=False)).abs().max() > 0.01


def test_k3_weighed_by_the_ratio_has_the_gradient_of_the_reverse_kl_whoever_sampled() -> None:
    logits, reference, old = tables()
    found = expected_gradient(kl_loss(reference, old, kl_estimator="k3", kl_importance=True), logits, sampler=old)
    assert_close(found, kl_gradient(logits, reference, forward=False))


def test_k1_as_a_loss_has_no_gradient_in_expectation() -> None:
    logits, reference, _ = tables()
    ones = torch.ones(1, WORDS, dtype=torch.bool)
    found = expected_gradient(lambda logprobs: kl_estimate("k1", logprobs, reference, ones), logits)
    assert_close(found, torch.zeros(WORDS, dtype=torch.float64))


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_the_estimators_mean_is_the_reverse_kl_itself(estimator: Any) -> None:
    logits, reference, _ = tables()
    logprobs, ones = logits.detach().log_softmax(0)[None], torch.ones(1, WORDS, dtype=torch.bool)
    found = (logprobs.exp() * kl_estimate(estimator, logprobs, reference, ones)).sum()
    assert_close(found, (logprobs.exp() * (logprobs - reference)).sum())


def class_weights(algorithm: Algorithm, batch: Batch) -> tuple[float, float]:
    """Gives the sum of weight times advantage of all successes, and of all failures."""
    credit, positive = algorithm.credit(batch), batch.episode_return > 0
    weights = token_weights(algorithm.config.aggregate, batch.action_mask, batch.trajectory, positive=positive)
    total = (weights * credit).sum(1)
    return float(total[positive].sum()), float(total[~positive].sum())


@pytest.mark.parametrize("successes", [1, 3, 8, 15])
def test_z_scores_of_binary_rewards_shrink_with_the_success_rate_and_balanced_classes_do_not(successes: int) -> None:
    batch = batch_of([1.0] * successes + [0.0] * (16 - successes))
    rate = successes / 16
    scale = math.sqrt(rate * (1 - rate))
    z_scored = [
        GRPO(GRPOConfig(kl_estimator="none", std_ddof=0, std_eps=1e-12)),
        ReinforcePP(ReinforcePPConfig(kl_estimator="none", std_eps=1e-12)),
    ]
    for algorithm in z_scored:
        assert class_weights(algorithm, batch) == pytest.approx((scale, -scale))
    assert class_weights(CRF(CRFConfig()), batch) == pytest.approx((0.5, -0.5))


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_a_group_teaches_something_with_the_probability_that_it_is_mixed(size: int, rate: float) -> None:
    teaches = 0.0
    for outcome in itertools.product([0.0, 1.0], repeat=size):
        advantage = centered(torch.tensor(outcome).double(), torch.zeros(size, dtype=torch.int64))
        chance = math.prod(rate if won else 1 - rate for won in outcome)
        teaches += chance * bool(advantage.any())
    assert teaches == pytest.approx(1 - rate**size - (1 - rate) ** size)


def test_a_separate_kl_can_turn_a_weak_negative_reward_positive() -> None:
    # Appendix of the ZCPO paper: 16 one-token answers; the weak negative's token has probability 0.6/15 under the
    # policy and 0.8/15 under the reference. Tests of zcpo show that its coefficient keeps the sign.
    tau, coef = 1e-3, 0.04
    batch = batch_of([*[1.0, -1.0] * 7, tau, -tau])
    algorithm = GRPO(GRPOConfig(kl_coef=coef))
    logprobs = torch.full(batch.input_ids.shape, math.log(0.6 / 15)).double().requires_grad_()
    output = policy_loss(
        algorithm.config,
        logprobs=logprobs,
        old_logprobs=logprobs.detach(),
        advantages=algorithm.credit(batch),
        action_mask=batch.action_mask,
        keep=batch.action_mask,
        weights=batch.action_mask.double(),
        ref_logprobs=torch.full_like(logprobs, math.log(0.8 / 15)),
    )
    output.loss.backward()
    assert logprobs.grad is not None
    pull = -float(logprobs.grad[15][batch.action_mask[15]])
    assert float(algorithm.credit(batch)[15][batch.action_mask[15]]) < 0 < pull
    assert pull == pytest.approx(0.0122982, abs=5e-8)
