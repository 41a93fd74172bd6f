"""The one loss: every algorithm is a choice of advantages, kept tokens, weights and the knobs below.

    loss = - sum_t w_t keep_t S(rho_t, A_t) + kl_coef sum_t w_t kl_t

Letters: B rows, T tokens. Sums run over action tokens only; a position off the mask has ratio 1 and weight 0 whatever
is stored there, NaN included. The weights are made once for the whole optimizer step, before it is cut into
micro-batches, and a filtered token keeps its place in their denominators (arXiv:2606.17250, Eq. 8): filtering never
rescales the rest.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

Aggregate = Literal[
    "token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_mean_token_sum_norm", "class_balanced"
]


class LossConfig(BaseModel):
    """The knobs of the loss."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    ratio: Literal["token", "none"] = "token"
    """Importance ratio: `token` is pi/pi_old of each token; `none` takes log pi itself (REINFORCE, cloning)."""
    clip_low: NonNegativeFloat | None = 0.2
    """The ratio counts no lower than 1 - clip_low where that would raise the objective; null does not clip."""
    clip_high: NonNegativeFloat | None = 0.2
    """The ratio counts no higher than 1 + clip_high where that would raise the objective; null does not clip."""
    dual_clip: PositiveFloat | None = None
    """Bound on the ratio of tokens with negative advantage (arXiv:1912.09729); null, as in the papers, has none."""
    aggregate: Aggregate = "token_mean"
    """Weight of a token: see `token_weights`."""
    horizon: PositiveInt | None = None
    """Constant divisor, in tokens, of `seq_mean_token_sum_norm`."""
    kl_estimator: Literal["none", "k2", "k3"] = "none"
    """KL to the reference as a loss: k2 has the gradient of the reverse KL, k3 is GRPO's; k1's would ignore it."""
    kl_coef: NonNegativeFloat = 0.0
    """Weight of the KL loss."""

    @model_validator(mode="after")
    def _divisor_is_given(self) -> "LossConfig":
        if self.aggregate == "seq_mean_token_sum_norm" and self.horizon is None:
            raise ValueError("aggregate seq_mean_token_sum_norm needs a horizon; set the tokens an episode may have")
        return self


@dataclass(frozen=True)
class LossOutput:
    """A loss and what it was made of; sums, not means, so that micro-batches and ranks add up."""

    loss: Float[Tensor, ""]
    sums: dict[str, Tensor]
    """`policy_loss`, `kl_loss`: weighted parts of the loss. `kept`, `clipped`: counts of action tokens.
    `approx_kl`: sum over action tokens of k3 between the current and the old policy, in nats."""


def policy_loss(
    config: LossConfig,
    *,
    logprobs: Float[Tensor, "B T"],
    old_logprobs: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    action_mask: Bool[Tensor, "B T"],
    keep: Bool[Tensor, "B T"],
    weights: Float[Tensor, "B T"],
    ref_logprobs: Float[Tensor, "B T"] | None = None,
) -> LossOutput:
    """Gives the loss of a micro-batch and its sums.

    `keep` is a subset of `action_mask`; `weights` come from `token_weights` over the whole optimizer step. Weights and
    advantages may be of higher precision than the log-probabilities, which set the precision of the loss.
    """
    log_ratio = _log_ratio(logprobs, old_logprobs, action_mask)
    kept = keep & action_mask
    weight = torch.where(action_mask, weights, 0.0).to(logprobs.dtype)
    advantage = torch.where(kept, advantages, 0.0).to(logprobs.dtype)
    if config.ratio == "none":
        objective, clipped = torch.where(action_mask, logprobs, 0.0) * advantage, torch.zeros_like(kept)
    else:
        objective, clipped = _clipped(config, log_ratio.exp(), advantage)
    policy = -(weight * torch.where(kept, objective, 0.0)).sum()
    kl = policy.new_zeros(())
    if config.kl_estimator != "none" and ref_logprobs is not None:
        kl = config.kl_coef * (weight * kl_estimate(config.kl_estimator, logprobs, ref_logprobs, action_mask)).sum()
    sums = {
        "policy_loss": policy.detach(),
        "kl_loss": kl.detach(),
        "kept": kept.sum(),
        "clipped": (clipped & kept).sum(),
        "approx_kl": kl_estimate("k3", old_logprobs, logprobs.detach(), action_mask).sum(),
    }
    return LossOutput(policy + kl, sums)


def _clipped(
    config: LossConfig, ratio: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Gives PPO's pessimistic objective min(rho A, clip(rho) A) and where the clip is what counts."""
    low = 0.0 if config.clip_low is None else 1 - config.clip_low
    high = math.inf if config.clip_high is None else 1 + config.clip_high
    plain = ratio * advantage
    bounded = ratio.clamp(low, high) * advantage
    objective = torch.minimum(plain, bounded)
    clipped = bounded < plain
    if config.dual_clip is not None:
        floor = config.dual_clip * advantage
        below = (advantage < 0) & (objective < floor)
        objective, clipped = torch.where(below, floor, objective), clipped | below
    return objective, clipped


def kl_estimate(
    estimator: Literal["k1", "k2", "k3"],
    logprobs: Float[Tensor, "B T"],
    ref_logprobs: Float[Tensor, "B T"],
    action_mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """Gives the estimate of KL(pi || ref) at each sampled token, 0 off the mask, in nats.

    With x = log pi - log ref: k1 = x, k2 = x^2/2, k3 = exp(-x) - 1 + x (http://joschu.net/blog/kl-approx.html).
    """
    x = _log_ratio(logprobs, ref_logprobs, action_mask)
    match estimator:
        case "k1":
            return x
        case "k2":
            return x.square() / 2
        case "k3":
            return torch.expm1(-x) + x


def _log_ratio(
    logprobs: Float[Tensor, "B T"], other: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Gives logprobs - other, 0 off the mask, bounded so that its exponential is finite in its precision."""
    bound = math.log(torch.finfo(logprobs.dtype).max) - 8
    difference = torch.where(mask, logprobs, 0.0) - torch.where(mask, other, 0.0)
    return difference.clamp(-bound, bound)


def token_weights(
    aggregate: Aggregate,
    action_mask: Bool[Tensor, "B T"],
    trajectory: Int[Tensor, " B"],
    *,
    positive: Bool[Tensor, " B"] | None = None,
    horizon: int | None = None,
) -> Float[Tensor, "B T"]:
    """Gives each action token's weight, from the counts of one whole optimizer step; float64, 0 off the mask.

    With n tokens in all, S trajectories that have any, T_i tokens of trajectory i over all its rows, S_c trajectories
    of the class (positive or not) of trajectory i:

        token_mean               1 / n
        seq_mean_token_mean      1 / (S T_i)
        seq_mean_token_sum       1 / S
        seq_mean_token_sum_norm  1 / (S horizon)
        class_balanced           1 / (2 S_c T_i)     (C-RF, arXiv:2606.17250, Eq. 7; an empty class adds nothing)
    """
    per_row = action_mask.sum(1, dtype=torch.float64)
    num = int(trajectory.max()) + 1 if len(trajectory) else 0
    lengths = per_row.new_zeros(num).index_add(0, trajectory, per_row)
    alive = lengths > 0
    size, count = lengths.clamp(min=1)[trajectory], alive.sum().clamp(min=1)
    match aggregate:
        case "token_mean":
            weight = torch.ones_like(size) / per_row.sum().clamp(min=1)
        case "seq_mean_token_mean":
            weight = 1 / (count * size)
        case "seq_mean_token_sum":
            weight = torch.ones_like(size) / count
        case "seq_mean_token_sum_norm":
            if horizon is None:
                raise ValueError("seq_mean_token_sum_norm needs a horizon")
            weight = torch.ones_like(size) / (count * horizon)
        case "class_balanced":
            if positive is None:
                raise ValueError("class_balanced needs the class of each row")
            of_class = per_row.new_zeros(num).index_add(0, trajectory, positive.double()) > 0
            num_positive = (alive & of_class).sum().clamp(min=1)
            num_negative = (alive & ~of_class).sum().clamp(min=1)
            weight = 1 / (2 * torch.where(of_class[trajectory], num_positive, num_negative) * size)
    return torch.where(action_mask, weight[:, None], 0.0)
