import math

import pytest
import torch
from torch import Tensor

from agentrl.algorithms._filters import filter_negatives, most_uncertain

ONE_ROW = torch.zeros(1, dtype=torch.int64)
NEGATIVE = torch.ones(1, dtype=torch.bool)


def kept(logprobs: list[float], tau: float, *, mask: Tensor | None = None) -> list[int]:
    """Gives the kept positions of one negative row."""
    values = torch.tensor([logprobs], dtype=torch.float64)
    mask = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
    return torch.nonzero(filter_negatives(values, mask, ONE_ROW, NEGATIVE, tau)[0])[:, 0].tolist()


def test_the_least_probable_tokens_stay() -> None:
    assert kept([-1.0, -5.0, -0.1, -3.0, -2.0], 0.6) == [1, 3]


def test_of_equally_probable_tokens_the_earlier_stays() -> None:
    assert kept([-1.0, -2.0, -2.0, -2.0, -1.0], 0.6) == [1, 2]


@pytest.mark.parametrize("tau", [0.1, 0.29, 0.5, 0.57, 0.58, 0.7, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("num", [1, 2, 3, 10, 20, 40, 50, 90, 100])
def test_floor_of_tau_times_t_tokens_go_but_one_always_stays(tau: float, num: int) -> None:
    exact = num * round(tau * 100) // 100  # in whole numbers, where 0.29 * 100 cannot be 28.999
    assert len(kept([-1.0] * num, tau)) == max(1, num - exact)


def test_tau_of_one_keeps_no_token() -> None:
    assert kept([-1.0, -2.0], 1.0) == []


def test_tokens_off_the_mask_neither_count_nor_stay() -> None:
    mask = torch.tensor([[True, False, True, False, True]])
    assert kept([-1.0, -math.inf, -2.0, math.nan, -3.0], 0.4, mask=mask) == [2, 4]


def test_positive_trajectories_keep_everything() -> None:
    logprobs, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)
    keep = filter_negatives(logprobs, mask, torch.arange(2), torch.tensor([False, True]), 0.9)
    assert keep.sum(1).tolist() == [3, 1]
    assert filter_negatives(logprobs, mask, torch.arange(2), torch.tensor([False, False]), 0.9).all()


def test_the_rows_of_a_trajectory_are_ranked_together() -> None:
    rows = torch.tensor([[-1.0, -2.0], [-8.0, -9.0], [-3.0, -4.0]])
    mask = torch.ones(3, 2, dtype=torch.bool)
    keep = filter_negatives(rows, mask, torch.tensor([0, 0, 1]), torch.ones(3, dtype=torch.bool), 0.5)
    assert keep.tolist() == [[False, False], [True, True], [False, True]]


def test_the_most_uncertain_tokens_of_the_batch_stay() -> None:
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    entropy = torch.tensor([[0.1, 0.5, 0.3, math.inf], [0.4, 0.2, math.nan, 9.0]])
    cases = {0.2: [[0, 1, 0, 0], [0, 0, 0, 0]], 0.4: [[0, 1, 0, 0], [1, 0, 0, 0]], 1.0: mask.int().tolist()}
    for frac, expected in cases.items():
        assert most_uncertain(entropy, mask, frac).int().tolist() == expected


def test_of_the_uncertain_tokens_one_always_stays_and_ties_stay_together() -> None:
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert most_uncertain(torch.tensor([[0.1, 0.2, 0.1]]), mask, 0.01).tolist() == [[False, True, False]]
    assert most_uncertain(torch.tensor([[0.2, 0.1, 0.2]]), mask, 0.34).tolist() == [[True, False, True]]
    assert most_uncertain(torch.zeros(0, 0), torch.zeros(0, 0, dtype=torch.bool), 0.5).shape == (0, 0)
