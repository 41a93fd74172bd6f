import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.gspo import GSPO, GSPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.loss import Correction
from agentrl.training.plan import plan, step_loss
from tests.episodes import episode


def three_rows() -> Batch:
    """Gives a won episode of two rows, with 2 tokens and 1, and a lost one of one row with 3 tokens."""
    batch = make_batch([episode(0, [2, 1], episode_return=1.0, whole=False), episode(1, [3])])
    return replace(batch, old_logprobs=torch.full(batch.input_ids.shape, -1.0).double())


def at(batch: Batch, *ratios: float) -> Tensor:
    """Gives log-probabilities of the action tokens with these ratios to the old policy's."""
    out = torch.full(batch.input_ids.shape, math.nan, dtype=torch.float64)
    out[batch.action_mask] = torch.tensor(ratios, dtype=torch.float64).log() - 1
    return out


def test_weights_are_counted_over_trajectories_before_any_filter() -> None:
    batch = three_rows()
    algorithm = CRFNTF(CRFNTFConfig(tau=0.7))
    step = plan(algorithm, batch, algorithm.credit(batch), at(batch, 1, 1, 1, 0.5, 0.4, 0.6))
    assert step.weights[batch.action_mask].tolist() == pytest.approx([1 / 6] * 6)
    assert step.keep[batch.action_mask].tolist() == [True] * 3 + [False, True, False]
    assert step.slopes is None
    assert step.sums == {}


def test_tokens_are_ranked_by_the_current_policy_or_else_by_the_old_one() -> None:
    batch = three_rows()
    old = at(batch, 1, 1, 1, 0.4, 0.5, 0.6)
    batch = replace(batch, old_logprobs=old)
    algorithm = CRFNTF(CRFNTFConfig(tau=0.7))
    for current, kept in ((None, [True, False, False]), (at(batch, 1, 1, 1, 0.6, 0.5, 0.4), [False, False, True])):
        step = plan(algorithm, batch, algorithm.credit(batch), current)
        assert step.keep[2][batch.action_mask[2]].tolist() == kept


def test_a_correction_scales_advantages_and_drops_tokens_but_leaves_the_weights() -> None:
    batch = three_rows()
    rollout = batch.rollout_logprobs.double() - torch.tensor([4.0, 1.0, 0.5]).log()[:, None]  # w of the three rows
    batch = replace(batch, rollout_logprobs=rollout)
    algorithm = CRF(CRFConfig(correction=Correction(level="token", high=3.0, outside="mask")))
    plain = plan(CRF(CRFConfig()), batch, algorithm.credit(batch), None)
    step = plan(algorithm, batch, algorithm.credit(batch), None)
    assert torch.equal(step.weights, plain.weights)
    assert step.advantages[batch.action_mask].tolist() == pytest.approx([3, 3, 1, -0.5, -0.5, -0.5])
    assert step.keep[batch.action_mask].tolist() == [False, False, True, True, True, True]


def test_selected_rows_keep_the_weights_of_the_whole_step_and_lose_padding() -> None:
    batch = three_rows()
    algorithm = CRF(CRFConfig())
    targets = torch.arange(batch.input_ids.numel()).reshape(batch.input_ids.shape).double()
    step = plan(algorithm, batch, algorithm.credit(batch), None, value_targets=targets)
    part = step.select(torch.tensor([1]))
    assert part.batch.input_ids.tolist() == [[1, 3, 102]]
    assert part.weights.tolist() == [[0, 0, pytest.approx(1 / 6)]]
    assert part.advantages.tolist() == [[0, 0, 1]]
    assert part.keep.tolist() == [[False, False, True]]
    assert part.value_targets is not None
    assert part.value_targets.tolist() == [[5, 6, 7]]


def test_a_silenced_step_has_no_gradient_and_no_counts() -> None:
    batch = three_rows()
    for algorithm in (CRF(CRFConfig()), CRF(CRFConfig(ratio="sequence"))):
        step = plan(algorithm, batch, algorithm.credit(batch), None).silenced()
        logprobs = at(batch, *[1.0] * 6).requires_grad_()
        output = step_loss(algorithm, step, logprobs)
        output.loss.backward()
        assert output.loss.item() == 0
        assert logprobs.grad is not None
        assert not logprobs.grad.any()
        assert all(not value for value in output.sums.values())


def coupled() -> GSPO:
    return GSPO(GSPOConfig(credit="c_rf", clip_low=0.5, clip_high=0.5))


@pytest.mark.parametrize("cut", [[[0, 1, 2]], [[0, 2], [1]], [[2], [1], [0]]])
def test_a_coupled_loss_has_the_whole_steps_gradient_however_it_is_cut(cut: list[list[int]]) -> None:
    batch, algorithm = three_rows(), coupled()
    current = at(batch, 2.0, 1.0, 0.625, 1.2, 1.0, 1.0)
    step = plan(algorithm, batch, algorithm.credit(batch), current)
    logprobs = current.clone().requires_grad_()
    for rows in cut:
        part = step.select(torch.tensor(rows))
        width = part.batch.input_ids.shape[1]
        step_loss(algorithm, part, logprobs[torch.tensor(rows), :width]).loss.backward()
    assert logprobs.grad is not None
    won, lost = 1.25 ** (1 / 3), 1.2 ** (1 / 3)  # geometric means of three ratios; each token's share is a third
    expected = [-won / 2 / 3] * 3 + [lost / 2 / 3] * 3
    assert logprobs.grad[batch.action_mask].tolist() == pytest.approx(expected)
    assert not logprobs.grad[~batch.action_mask].any()


def test_a_coupled_loss_reports_its_sums_for_the_whole_step_once() -> None:
    batch, algorithm = three_rows(), coupled()
    step = plan(algorithm, batch, algorithm.credit(batch), at(batch, 4.0, 2.0, 1.0, 1.2, 1.0, 1.0))
    assert float(step.sums["policy_loss"]) == pytest.approx(-(1.5 - 1.2 ** (1 / 3)) / 2)  # the mean of 2 is clipped
    assert (int(step.sums["kept"]), int(step.sums["clipped"])) == (6, 3)
    assert step_loss(algorithm, step, at(batch, *[1.0] * 6)).sums == {}


def test_a_coupled_loss_without_current_log_probabilities_is_on_policy() -> None:
    batch, algorithm = three_rows(), coupled()
    step = plan(algorithm, batch, algorithm.credit(batch), None)
    assert step.slopes is not None
    assert step.slopes[batch.action_mask].tolist() == pytest.approx([-1 / 6] * 3 + [1 / 6] * 3)


def test_a_batch_must_be_annotated_first() -> None:
    batch, algorithm = make_batch([episode(0, [1])]), CRF(CRFConfig())
    with pytest.raises(AssertionError, match="annotate"):
        plan(algorithm, batch, algorithm.credit(batch), None)
