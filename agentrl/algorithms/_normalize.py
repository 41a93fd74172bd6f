"""Normalization of advantages over the whole batch (REINFORCE++, arXiv:2501.03262).

Letters: B rows, T tokens.
"""

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import AlgorithmConfig
from agentrl.batch import Batch
from agentrl.loss import sum_by


class NormalizedConfig(AlgorithmConfig):
    """Knobs of algorithms whose advantages are normalized over the batch."""

    normalize_over: Literal["tokens", "trajectories"] = "tokens"
    """Whether each token or each trajectory counts once in the mean and the standard deviation."""
    std_ddof: Literal[0, 1] = 0
    """Divisor of the variance: count minus this. The authors' code uses 0."""
    std_eps: PositiveFloat = 1e-8
    """Keeps the divisor from 0."""
    std_eps_on: Literal["std", "variance", "least_variance"] = "std"
    """Where std_eps goes: added to the deviation (default, the papers' formula), added to the variance, or the least
    variance there is."""


def normalized(values: Float[Tensor, "B T"], batch: Batch, config: NormalizedConfig) -> Float[Tensor, "B T"]:
    """Gives (A - mean) / (std + eps) over all action tokens of the batch, exactly 0 where all are equal.

    0 off the mask.
    """
    mask = batch.action_mask
    inside = values[mask]
    if not len(inside) or bool(inside.max() == inside.min()):
        return torch.zeros_like(values)
    count = mask.double()
    if config.normalize_over == "trajectories":
        count = count / sum_by(count.sum(1), batch.trajectory).clamp(min=1)[batch.trajectory, None]
    total = count.sum()
    deviation = torch.where(mask, values - (count * values).sum() / total, 0.0)
    variance = (count * deviation.square()).sum() / (total - config.std_ddof).clamp(min=1)
    match config.std_eps_on:
        case "std":
            divisor = variance.sqrt() + config.std_eps
        case "variance":
            divisor = (variance + config.std_eps).sqrt()
        case "least_variance":
            divisor = variance.clamp(min=config.std_eps).sqrt()
    return deviation / divisor
