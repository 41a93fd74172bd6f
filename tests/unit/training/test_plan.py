import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from agentrl import assembly
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.gspo import GSPO, GSPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.config.load import load_config
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


def test_a_batch_must_be_annotated_first_where_tokens_are_coupled() -> None:
    batch, algorithm = make_batch([episode(0, [1])]), coupled()
    with pytest.raises(AssertionError, match="annotate"):
        plan(algorithm, batch, algorithm.credit(batch), None)


TABLE_7 = """
extends: algorithms/zcpo
algorithm:
  aggregate: token_mean
  clip_low: 0.2
  clip_high: 0.28
  dual_clip: 3.0
  correction: {level: token, outside: clip, low: 0.5, high: 5.0, veto: 1e-4}
training: {learning_rate: 2e-6, warmup_steps: 5, weight_decay: 0.1, max_grad_norm: 1.0, minibatches: 1}
"""
"""What the long-context experiments of the ZCPO paper set (table 7)."""


def test_the_settings_of_the_zcpo_papers_long_runs_can_be_written_and_compute_its_formulae(tmp_path: Path) -> None:
    path = tmp_path / "table_7.yaml"
    path.write_text(TABLE_7)
    algorithm = assembly.algorithm(load_config(str(path)).config)
    played = [episode(0, [2], episode_return=1.0), episode(1, [2]), episode(2, [2])]
    batch = make_batch(played)
    mask, zeros = batch.action_mask, torch.zeros(batch.input_ids.shape).double()
    w = torch.tensor([[8.0, 1.5], [0.1, 0.9], [1.0, 5e-5]]).double()  # pi_old / pi_rollout
    drift = torch.tensor([[0.1, 0.2], [0.05, 0.05], [0.0, 0.0]]).double()
    old = zeros.masked_scatter(mask, torch.full((6,), -1.0).double())
    rollout = zeros.masked_scatter(mask, -1 - w.log().flatten())
    batch = replace(
        batch, old_logprobs=old, rollout_logprobs=rollout, ref_kl=zeros.masked_scatter(mask, drift.flatten())
    )
    step = plan(algorithm, batch, algorithm.credit(batch), None)
    # A = 2/3, -1/3, -1/3 and s = 2/3; D = 0.15, 0.05, 0 with mean 1/15; C = A/s - 4 (D - 1/15)
    c = [1 - 4 * (0.15 - 1 / 15), -0.5 - 4 * (0.05 - 1 / 15), -0.5 + 4 / 15]
    factor = [[5.0, 1.5], [0.5, 0.9]]  # cut to 0.5 .. 5; the third answer holds a token below 1e-4
    assert step.keep[mask].tolist() == [True, True, True, True, False, False]
    expected = [c[row] * weight for row, weights in enumerate(factor) for weight in weights]
    assert step.advantages[mask][:4].tolist() == pytest.approx(expected)
    assert {name: int(value) for name, value in step.sums.items()} == {"corrected": 2, "vetoed": 2}
    assert step.weights[mask].tolist() == pytest.approx([1 / 6] * 6)
    ratio = torch.tensor([1.5, 1.1, 4.0, 0.7, 1.0, 1.0]).double()
    loss = step_loss(algorithm, step, zeros.masked_scatter(mask, -1 + ratio.log())).loss
    # clipped above at 1.28; free; a negative one's ratio counts 3 at most, and 0.8 at least
    counted = [1.28, 1.1, 3.0, 0.8]
    assert float(loss) == pytest.approx(-sum(r * x for r, x in zip(counted, expected, strict=True)) / 6)
