"""The loss of the critic. Letters: B rows, T tokens."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from agentrl.loss.policy import LossOutput


def value_loss(
    values: Float[Tensor, "B T"],
    *,
    old_values: Float[Tensor, "B T"],
    targets: Float[Tensor, "B T"],
    action_mask: Bool[Tensor, "B T"],
    weights: Float[Tensor, "B T"],
    clip: float | None,
) -> LossOutput:
    """Gives half the weighted squared error of the values, and its sums.

    With a `clip`, a value counts no further than that from its old one where this would lower the error (PPO's value
    clip): 1/2 max((V - target)^2, (clip(V) - target)^2). What stands off the mask changes nothing.
    """
    zero = torch.zeros((), dtype=values.dtype, device=values.device)
    value, old = torch.where(action_mask, values, zero), torch.where(action_mask, old_values, zero).to(values.dtype)
    target = torch.where(action_mask, targets, zero).to(values.dtype)
    error = (value - target).square()
    clipped = torch.zeros_like(action_mask)
    if clip is not None:
        limited = (old + (value - old).clamp(-clip, clip) - target).square()
        clipped = (limited > error) & action_mask
        error = torch.maximum(error, limited)
    weight = torch.where(action_mask, weights, 0.0).to(values.dtype)
    loss = (weight * error).sum() / 2
    return LossOutput(loss, {"value_loss": loss.detach(), "value_clipped": clipped.sum()})
