import math

import pytest
import torch
from torch import Tensor

from agentrl.loss import kl_estimate
from agentrl.loss.kl import bounded, log_ratio

MASK = torch.tensor([[True, False]])


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64)


def test_kl_estimates_by_hand() -> None:
    logprobs, reference = row(-1.0, 0.0), row(-1.5, math.nan)  # x = 1/2, and nothing off the mask
    assert kl_estimate("k1", logprobs, reference, MASK).tolist() == [[0.5, 0.0]]
    assert kl_estimate("k2", logprobs, reference, MASK).tolist() == [[0.125, 0.0]]
    assert kl_estimate("k3", logprobs, reference, MASK).tolist() == [[pytest.approx(math.exp(-0.5) - 0.5), 0.0]]


def test_k3_is_exact_where_the_policies_hardly_differ() -> None:
    # exp(-x) - 1 + x = x^2/2 - ..., which exp(-x) - 1 would round to 1e-16
    assert float(kl_estimate("k3", row(1e-9, 0), row(0, 0), MASK)[0, 0]) == pytest.approx(0.5e-18, rel=1e-6, abs=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("far", [1e5, -1e5, math.inf, -math.inf])
def test_the_exponential_of_any_log_ratio_is_finite(dtype: torch.dtype, far: float) -> None:
    value = log_ratio(torch.tensor([[far, 0]], dtype=dtype), torch.zeros(1, 2, dtype=dtype), MASK)
    assert value.exp().isfinite().all()
    assert math.copysign(1, float(value[0, 0])) == math.copysign(1, far)


def test_what_an_exponential_can_hold_is_left_alone() -> None:
    assert bounded(row(-80.0, 80.0)).tolist() == [[-80.0, 80.0]]
