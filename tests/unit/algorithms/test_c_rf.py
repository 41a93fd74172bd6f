import pytest
import torch

from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.batch import make_batch
from agentrl.loss import policy_loss, token_weights
from tests.episodes import episode


def test_the_loss_is_equation_7_written_naively() -> None:
    trajectories = [episode(0, [2], episode_return=1.0), episode(1, [3]), episode(2, [1])]
    ratios = torch.tensor([[0.5, 9.0, 0.0], [0.5, 1.0, 7.0], [1.5, 0.0, 0.0]], dtype=torch.float64)
    batch = make_batch(trajectories)
    old = torch.full(batch.input_ids.shape, -3.0, dtype=torch.float64)
    logprobs = old.clone()
    logprobs[:, 2:] += torch.where(batch.action_mask[:, 2:], ratios, 1.0).log()
    algorithm = CRF(CRFConfig(clip_low=0.2, clip_high=0.3))
    advantages = algorithm.advantages(batch)
    config = algorithm.config
    weights = token_weights(
        config.aggregate, batch.action_mask, batch.trajectory, positive=(advantages > 0).any(1), horizon=None
    )
    output = policy_loss(
        config,
        logprobs=logprobs,
        old_logprobs=old,
        advantages=advantages,
        action_mask=batch.action_mask,
        keep=algorithm.keep(batch, advantages, logprobs),
        weights=weights,
    )
    positives = (0.5 + 1.3) / 2
    negatives = ((0.8 + 1.0 + 7.0) / 3 + 1.5) / 2
    assert float(output.loss) == pytest.approx(-(positives - negatives) / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("baseline", "signs"),
    [("zero", [1, 1, 1, -1]), ("batch_mean", [-1, -1, 1, -1]), ("group_mean", [-1, 1, 1, -1])],
)
def test_a_trajectory_is_positive_above_its_baseline(baseline: str, signs: list[int]) -> None:
    returns = [(1.0, 0), (2.0, 0), (9.0, 1), (0.0, 1)]  # batch mean 3, group means 1.5 and 4.5
    batch = make_batch([episode(i, [1], episode_return=r, group=g) for i, (r, g) in enumerate(returns)])
    algorithm = CRF(CRFConfig.model_validate({"baseline": baseline}))
    assert algorithm.advantages(batch)[:, 2].tolist() == signs


def test_the_advantage_does_not_depend_on_the_success_rate() -> None:
    for wins in (1, 9):
        batch = make_batch([episode(i, [1], episode_return=float(i < wins)) for i in range(10)])
        assert CRF(CRFConfig()).advantages(batch)[0, 2] == 1


def test_only_failed_trajectories_are_filtered_by_their_least_probable_tokens() -> None:
    batch = make_batch([episode(0, [4], episode_return=1.0), episode(1, [4])])
    logprobs = torch.zeros_like(batch.rollout_logprobs)
    logprobs[:, 2:] = torch.tensor([-1.0, -4.0, -2.0, -3.0])
    algorithm = CRFNTF(CRFNTFConfig(tau=0.5))
    keep = algorithm.keep(batch, algorithm.advantages(batch), logprobs)
    assert keep[0].tolist() == batch.action_mask[0].tolist()
    assert keep[1, 2:].tolist() == [False, True, False, True]


def test_filtering_ranks_by_the_policy_at_the_start_of_each_optimizer_step() -> None:
    assert "current_logprobs" in CRFNTF.needs
    assert "current_logprobs" not in CRF.needs


def test_the_papers_settings_are_the_defaults() -> None:
    config = CRFNTFConfig()
    assert (config.tau, config.clip_low, config.clip_high, config.dual_clip) == (0.9, 0.2, 10.0, None)
    assert config.kl_estimator == "none"
