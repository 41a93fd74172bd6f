"""Off-policy correction: what the update makes of an engine that is not exactly the trainer.

Letters: B rows, T tokens, N trajectories. With w_t = pi_old / pi_rollout of a sampled token, all of it is computed once
for a whole batch, has no gradient, and leaves every denominator alone.
"""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat
from torch import Tensor

from agentrl.loss.aggregate import sum_by
from agentrl.loss.kl import bounded, log_ratio


class Correction(BaseModel):
    """How tokens are weighted, and which are dropped, by how far the engine was from the trainer."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    level: Literal["none", "token", "sequence", "geometric"] = "none"
    """What is weighted: `token` each token by its w (truncated importance sampling), `sequence` a whole trajectory by
    the product of its w, `geometric` by their geometric mean."""
    low: NonNegativeFloat | None = None
    """The least weight; null has none."""
    high: PositiveFloat | None = 2.0
    """The largest weight; null has none. 2 is the field's habit."""
    outside: Literal["clip", "mask"] = "clip"
    """What becomes of a weight out of bounds: it is moved to the bound (TIS), or what it weighs is dropped (IcePop)."""
    veto: PositiveFloat | None = None
    """A trajectory with any token whose w is below this is dropped whole; null drops none."""
    max_divergence: PositiveFloat | None = None
    """A trajectory whose mean binary KL from engine to trainer, in nats, exceeds this is dropped whole
    (FlashREINFORCE); null drops none."""

    @property
    def is_on(self) -> bool:
        """Whether anything is corrected."""
        return self.level != "none" or self.veto is not None or self.max_divergence is not None

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what contradicts itself or was set without effect."""
        found = []
        if self.level == "none":
            fields = type(self).model_fields
            told = [knob for knob in ("low", "high", "outside") if getattr(self, knob) != fields[knob].default]
            found += [
                (f"correction.{knob}", "no effect at level none; set level token, or leave it out") for knob in told
            ]
        elif self.outside == "mask" and self.low is None and self.high is None:
            found.append(("correction.outside", "mask has no effect without bounds; set low or high, or clip"))
        if self.low is not None and self.high is not None and self.low > self.high:
            found.append(("correction.low", f"{self.low} is above correction.high {self.high}; swap them"))
        return found


def correct(
    config: Correction,
    old_logprobs: Float[Tensor, "B T"],
    rollout_logprobs: Float[Tensor, "B T"],
    action_mask: Bool[Tensor, "B T"],
    trajectory: Int[Tensor, " B"],
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Gives each action token's weight (float64, 0 off the mask) and which action tokens stay."""
    mask = action_mask
    log_w = log_ratio(old_logprobs.detach().double(), rollout_logprobs.double(), mask)
    tokens = sum_by(mask.sum(1).double(), trajectory).clamp(min=1)
    total = sum_by(log_w.sum(1), trajectory)
    match config.level:
        case "none":
            weight = torch.ones_like(log_w)
        case "token":
            weight = log_w.exp()
        case "sequence":
            weight = bounded(total).exp()[trajectory, None].expand_as(log_w)
        case "geometric":
            weight = (total / tokens).exp()[trajectory, None].expand_as(log_w)
    stays = mask
    if config.level != "none":
        low, high = config.low or 0.0, math.inf if config.high is None else config.high
        if config.outside == "mask":
            stays = stays & (weight >= low) & (weight <= high)
        weight = weight.clamp(low, high)
    if config.veto is not None:
        far = sum_by(((log_w < math.log(config.veto)) & mask).sum(1).double(), trajectory) > 0
        stays = stays & ~far[trajectory, None]
    if config.max_divergence is not None:
        divergence = sum_by(binary_kl(rollout_logprobs, old_logprobs, mask).sum(1), trajectory) / tokens
        stays = stays & (divergence <= config.max_divergence)[trajectory, None]
    return torch.where(mask, weight, 0.0), stays


def binary_kl(
    logprobs: Float[Tensor, "B T"], other: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Gives p ln(p/q) + (1-p) ln((1-p)/(1-q)) for the probabilities p and q of each sampled token.

    In float64 and nats; 0 off the mask.
    """
    log_p, log_q = (torch.where(mask, one.detach().double(), -1.0) for one in (logprobs, other))
    tiny = torch.finfo(torch.float64).tiny
    not_p, not_q = ((-torch.expm1(one.clamp(max=0.0))).clamp(min=tiny) for one in (log_p, log_q))
    kl = log_p.exp() * (log_p - log_q) + not_p * (not_p.log() - not_q.log())
    return torch.where(mask, kl, 0.0)
