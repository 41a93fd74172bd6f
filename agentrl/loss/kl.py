"""Estimates of a KL divergence from the log-probabilities of sampled tokens.

Letters: B rows, T tokens.
"""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def kl_estimate(
    estimator: Literal["k1", "k2", "k3"],
    logprobs: Float[Tensor, "B T"],
    ref_logprobs: Float[Tensor, "B T"],
    action_mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """Gives the estimate of KL(pi || ref) at each sampled token, 0 off the mask, in nats.

    With x = log pi - log ref: k1 = x, k2 = x^2/2, k3 = exp(-x) - 1 + x (http://joschu.net/blog/kl-approx.html).
    """
    x = log_ratio(logprobs, ref_logprobs, action_mask)
    match estimator:
        case "k1":
            return x
        case "k2":
            return x.square() / 2
        case "k3":
            return torch.expm1(-x) + x


def log_ratio(
    logprobs: Float[Tensor, "B T"], other: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Gives logprobs - other, 0 off the mask, bounded so that its exponential is finite in its precision."""
    return bounded(torch.where(mask, logprobs, 0.0) - torch.where(mask, other, 0.0))


def bounded(log_value: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Gives the logarithm, bounded so that its exponential is finite in its precision."""
    bound = math.log(torch.finfo(log_value.dtype).max) - 8
    return log_value.clamp(-bound, bound)
