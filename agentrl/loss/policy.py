"""The one loss: every algorithm is a choice of advantages, kept tokens, weights and the knobs of config.py.

    loss = - sum_t w_t keep_t S(rho_t, A_t) + kl_coef sum_t w_t kl_t

Letters: B rows, T tokens, N trajectories, G groups. Sums run over action tokens only; a position off the mask has ratio
1 and weight 0 whatever is stored there, NaN included. The weights are made once for the whole optimizer step, before it
is cut into micro-batches, and a filtered token keeps its place in their denominators (arXiv:2606.17250, Eq. 8):
filtering never rescales the rest.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from agentrl.loss.aggregate import sum_by
from agentrl.loss.config import LossConfig
from agentrl.loss.kl import bounded, kl_estimate, log_ratio


@dataclass(frozen=True)
class LossOutput:
    """A loss and what it was made of; sums, not means, so that micro-batches and ranks add up."""

    loss: Float[Tensor, ""]
    sums: dict[str, Tensor]
    """`policy_loss`, `kl_loss`: weighted parts of the loss. `kept`, `clipped`: counts of action tokens.
    `approx_kl`: sum over action tokens of k3 between the current and the old policy, in nats."""


@dataclass(frozen=True)
class _Surrogate:
    """What each token adds to the objective, and where a clip is what counts."""

    objective: Float[Tensor, "B T"]
    clipped: Bool[Tensor, "B T"]


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
    trajectory: Int[Tensor, " B"] | None = None,
    group: Int[Tensor, " B"] | None = None,
) -> LossOutput:
    """Gives the loss of a micro-batch, or of a whole step when `config.is_coupled`, and its sums.

    `keep` is a subset of `action_mask`; `weights` come from `token_weights` over the whole optimizer step. Weights and
    advantages may be of higher precision than the log-probabilities, which set the precision of the loss. Without a
    `trajectory`, every row is one; `group` matters to `gvpo` alone.
    """
    owner = torch.arange(len(logprobs), device=logprobs.device) if trajectory is None else trajectory
    kept = keep & action_mask
    weight = torch.where(action_mask, weights, 0.0).to(logprobs.dtype)
    advantage = torch.where(kept, advantages, 0.0).to(logprobs.dtype)
    log_rho = log_ratio(logprobs, old_logprobs, action_mask)
    if config.surrogate == "gvpo":
        made = _gvpo(config, log_rho, advantage, action_mask, owner, owner if group is None else group)
    else:
        made = _surrogate(config, logprobs, log_rho, advantage, action_mask, owner)
    policy = -(weight * torch.where(kept, made.objective, 0.0)).sum()
    kl = policy.new_zeros(())
    if config.has_kl_loss:
        if ref_logprobs is None:
            raise ValueError("a KL loss needs the reference's log-probabilities")
        estimate = kl_estimate(_estimator(config), logprobs, ref_logprobs, action_mask)
        slope = _kl_slope(config, logprobs, ref_logprobs, action_mask)
        if config.kl_importance:
            # Autograd would get the slope of ratio k3 as a difference of huge numbers where the reference is far above.
            ratio = log_rho.detach().exp()
            slope = ratio * slope
            estimate = ratio * estimate.detach() + slope * (log_rho - log_rho.detach())
        kl = config.kl_coef * (weight * _gated(config, estimate, slope * weight, made.clipped & kept)).sum()
    sums = {
        "policy_loss": policy.detach(),
        "kl_loss": kl.detach(),
        "kept": kept.sum(),
        "clipped": (made.clipped & kept).sum(),
        "approx_kl": kl_estimate("k3", old_logprobs, logprobs.detach(), action_mask).sum(),
    }
    return LossOutput(policy + kl, sums)


def _surrogate(
    config: LossConfig,
    logprobs: Float[Tensor, "B T"],
    log_rho: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    owner: Int[Tensor, " B"],
) -> _Surrogate:
    """Gives S(rho, A) of each token at the chosen level of the ratio."""
    nowhere = torch.zeros_like(mask)
    safe_logprobs = torch.where(mask, logprobs, 0.0)
    if config.ratio == "none":
        return _Surrogate(safe_logprobs * advantage, nowhere)
    if config.ratio == "geometric":
        bounded_log = _clip_log(config, log_rho, advantage)
        ratio = bounded(_over_trajectory(bounded_log, mask, owner, mean=True)).exp()[owner, None]
        return _Surrogate(ratio * advantage, bounded_log != log_rho)
    if config.ratio == "token":
        ratio = log_rho.exp()
    else:
        mean = config.ratio == "sequence"
        ratio = bounded(_over_trajectory(log_rho, mask, owner, mean=mean)).exp()[owner, None].expand_as(log_rho)
    low, high = _bounds(config)
    match config.surrogate:
        case "cispo":
            weight = ratio.detach().clamp(low, high)
            return _Surrogate(weight * advantage * safe_logprobs, weight != ratio.detach())
        case "quadratic":
            distance = (ratio - 1).clamp(max=1e15)  # the square of more is infinite in float32
            return _Surrogate(ratio * advantage - config.quadratic_coef / 2 * distance.square(), nowhere)
        case _:
            return _clip(config, ratio, advantage)


def _bounds(config: LossConfig) -> tuple[float, float]:
    """Gives the least and the largest ratio."""
    low = 0.0 if config.clip_low is None else 1 - config.clip_low
    return low, math.inf if config.clip_high is None else 1 + config.clip_high


def _clip(config: LossConfig, ratio: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"]) -> _Surrogate:
    """Gives PPO's pessimistic objective min(rho A, clip(rho) A) and where the clip is what counts."""
    low, high = _bounds(config)
    plain = ratio * advantage
    limited = ratio.clamp(low, high) * advantage
    objective = torch.minimum(plain, limited)
    clipped = limited < plain
    if config.dual_clip is not None:
        floor = config.dual_clip * advantage
        below = (advantage < 0) & (objective < floor)
        objective, clipped = torch.where(below, floor, objective), clipped | below
    return _Surrogate(objective, clipped)


def _clip_log(
    config: LossConfig, log_rho: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Gives GMPO's log-ratios: at most clip_high where the advantage is not negative, else at least -clip_low."""
    low = math.inf if config.clip_low is None else config.clip_low
    high = math.inf if config.clip_high is None else config.clip_high
    return torch.where(advantage < 0, log_rho.clamp(min=-low), log_rho.clamp(max=high))


def _over_trajectory(
    values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], owner: Int[Tensor, " B"], *, mean: bool
) -> Float[Tensor, " N"]:
    """Gives the sum, or the mean, of a value that is 0 off the mask over each trajectory's action tokens."""
    total = sum_by(values.sum(1), owner)
    return total / sum_by(mask.sum(1).to(values.dtype), owner).clamp(min=1) if mean else total


def _gvpo(
    config: LossConfig,
    log_rho: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    owner: Int[Tensor, " B"],
    group: Int[Tensor, " B"],
) -> _Surrogate:
    """Gives GVPO's objective -1/2 ((b x_i - mean b x) - A_i)^2 S / (G (n - 1)), on every token of trajectory i.

    x_i is the trajectory's log-ratio to the policy that sampled it, b is gvpo_coef, the mean is over the n trajectories
    of the group that have tokens, and there are S such trajectories in G groups: with weights 1 / (S T_i) the loss is
    the mean over groups of the sums over i, each divided by n - 1.
    """
    tokens = sum_by(mask.sum(1).to(log_rho.dtype), owner)
    alive = (tokens > 0).to(log_rho.dtype)
    reward = config.gvpo_coef * _over_trajectory(log_rho, mask, owner, mean=False)
    target = _over_trajectory(advantage, mask, owner, mean=True)
    groups = torch.zeros_like(tokens, dtype=torch.int64).index_copy(
        0, owner, torch.unique(group, return_inverse=True)[1]
    )
    size = sum_by(alive, groups)
    mean = (sum_by(reward * alive, groups) / size.clamp(min=1))[groups]
    scale = (alive.sum() / ((size > 0).sum().clamp(min=1) * (size - 1).clamp(min=1)))[groups]
    objective = -scale * ((reward - mean) - target).square() / 2
    return _Surrogate(objective[owner, None].expand_as(log_rho), torch.zeros_like(mask))


def _estimator(config: LossConfig) -> Literal["k2", "k3"]:
    if config.kl_estimator not in ("k2", "k3"):
        raise ValueError(f"{config.kl_estimator} as a loss is noise around 0; use k2 or k3")
    return config.kl_estimator


def _kl_slope(
    config: LossConfig,
    logprobs: Float[Tensor, "B T"],
    ref_logprobs: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """Gives the derivative of each token's KL estimate k by its log-probability: x for k2, 1 - exp(-x) for k3.

    Where the loss is ratio k, this is k + k', which the ratio is still to be multiplied by: x + x^2/2, and x.
    """
    x = log_ratio(logprobs, ref_logprobs, mask).detach()
    if config.kl_importance:
        return x if config.kl_estimator == "k3" else x + x.square() / 2
    return x if config.kl_estimator == "k2" else -torch.expm1(-x)


def _gated(
    config: LossConfig,
    estimate: Float[Tensor, "B T"],
    slope: Float[Tensor, "B T"],
    clipped: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """Gives the KL after its gate; the norm of the `slope` stands for the size of its gradient."""
    if config.kl_gate == "none":
        return estimate
    open_slope = torch.where(clipped, 0.0, slope)
    if config.kl_gate == "clipped":
        return torch.where(clipped, 0.0, estimate)
    whole = slope.norm()
    return estimate * torch.where(whole > 0, open_slope.norm() / whole, 1.0)
