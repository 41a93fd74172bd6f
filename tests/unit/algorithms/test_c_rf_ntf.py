import pytest
import torch

from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.batch import make_batch
from tests.episodes import episode
from tests.unit.algorithms.steps import outcomes, step


def test_only_failed_trajectories_are_filtered_by_their_least_probable_tokens() -> None:
    batch = make_batch([episode(0, [4], episode_return=1.0), episode(1, [4])])
    logprobs = torch.zeros_like(batch.rollout_logprobs)
    logprobs[:, 2:] = torch.tensor([-1.0, -4.0, -2.0, -3.0])
    algorithm = CRFNTF(CRFNTFConfig(tau=0.5))
    keep = algorithm.keep(batch, algorithm.advantages(batch), logprobs)
    assert keep[0].tolist() == batch.action_mask[0].tolist()
    assert keep[1, 2:].tolist() == [False, True, False, True]


def test_a_filtered_token_keeps_its_place_in_the_denominator() -> None:
    ratios = [[1.0, 2.0], [1.1, 0.5, 1.0, 0.9]]  # of the four, the last and the second stay; the second is clipped
    found = step(CRFNTF(CRFNTFConfig(tau=0.5)), outcomes([1.0, 0.0], tokens=[2, 4]), ratios)
    assert found.gradient == [pytest.approx([-1 / 4, -2 / 4]), pytest.approx([0, 0, 0, 0.9 / 8])]
    assert found.loss == pytest.approx(-((1 + 2) / 4 - (0.8 + 0.9) / 8))


def test_nine_tenths_are_left_out_unless_told_otherwise() -> None:
    batch = outcomes([0.0], tokens=[20])
    algorithm = CRFNTF(CRFNTFConfig())
    keep = algorithm.keep(batch, algorithm.advantages(batch), batch.rollout_logprobs)
    assert int(keep.sum()) == 2


def test_filtering_ranks_by_the_policy_at_the_start_of_each_optimizer_step() -> None:
    assert CRFNTF(CRFNTFConfig()).requires == {"current_logprobs"}
