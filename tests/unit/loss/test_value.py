import math

import pytest
import torch
from torch import Tensor

from agentrl.loss import LossOutput, value_loss

NAN = math.nan


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64)


def computed(values: Tensor, *, old: Tensor, targets: Tensor, clip: float | None) -> LossOutput:
    mask = ~targets.isnan()
    weights = row(0.25, 0.75, NAN, NAN)[:, : mask.shape[1]]
    return value_loss(values, old_values=old, targets=targets, action_mask=mask, weights=weights, clip=clip)


def test_it_is_half_the_weighted_squared_error() -> None:
    values = row(1.0, 3.0, 9.0).requires_grad_()
    output = computed(values, old=row(0, 0, 0), targets=row(2.0, 1.0, NAN), clip=None)
    output.loss.backward()
    assert output.loss.item() == pytest.approx((0.25 * 1 + 0.75 * 4) / 2)
    assert values.grad is not None
    assert values.grad.tolist() == [[0.25 * -1, 0.75 * 2, 0]]


@pytest.mark.parametrize(
    ("value", "error", "slope"),
    [
        (1.5, 1.2 - 2, 0.0),  # it has come near enough to the target of 2 from the old value of 1
        (1.1, 1.1 - 2, 1.1 - 2),  # within the clip
        (0.5, 0.5 - 2, 0.5 - 2),  # away from the target: no bound
    ],
)
def test_the_clip_bounds_only_what_lowers_the_error(value: float, error: float, slope: float) -> None:
    values = row(value).requires_grad_()
    output = computed(values, old=row(1.0), targets=row(2.0), clip=0.2)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(0.25 * error**2 / 2)
    assert values.grad is not None
    assert values.grad.item() == pytest.approx(0.25 * slope)
    assert int(output.sums["value_clipped"]) == (slope == 0)


@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("stored", [NAN, math.inf, -math.inf])
def test_nothing_stored_off_the_mask_reaches_loss_or_gradient(stored: float, clip: float | None) -> None:
    values = row(1.0, 1.0, stored).requires_grad_()
    output = computed(values, old=row(1.0, 1.0, stored), targets=row(2.0, 1.0, NAN), clip=clip)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(0.25 / 2)
    assert values.grad is not None
    assert values.grad.tolist() == [[-0.25, 0, 0]]
    assert int(output.sums["value_clipped"]) == 0
