import pytest
import torch

from agentrl.algorithms.c_rf import CRF, CRFConfig
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


def test_the_papers_settings_are_the_defaults() -> None:
    config = CRFConfig()
    assert (config.clip_low, config.clip_high, config.dual_clip, config.kl_estimator) == (0.2, 10.0, None, "none")
    assert CRF(config).requires == frozenset()
