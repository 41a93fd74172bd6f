"""Weights and masks that correct for an engine that is not exactly the trainer.

Letters: B rows, T tokens.
"""

import math

import torch
from pydantic import ValidationError
from torch import Tensor

from agentrl.loss import Correction, correct
from tests.golden.compare import Comparison, Values
from tests.golden.vectors import NotOurs, Record


def corrected(record: Record, *, bound: float = math.inf, **knobs: object) -> tuple[Tensor, Tensor]:
    """Gives our weights and which tokens stay, from log-ratios within a peer's bound."""
    try:
        config = Correction.model_validate(knobs)
    except ValidationError as error:
        raise NotOurs(f"refused: {error}") from error
    rollout, old = record.given("rollout_log_prob"), record.given("old_log_prob")
    old = rollout + (old - rollout).clamp(-bound, bound)
    weights, stays = correct(config, old, rollout, record.mask, torch.arange(len(record.mask)))
    return weights, stays


def verl_weights(record: Record) -> Values:
    """Truncated weights, or with two thresholds masked ones, of tokens and of whole answers."""
    if record.options["rollout_is_batch_normalize"] is not False:
        raise NotOurs("rollout_is_batch_normalize: weights divided by their mean")
    level, threshold = record.options["rollout_is"], record.options["rollout_is_threshold"]
    low, high, outside = _range(threshold)
    bound, least = (20, 0.0) if level == "token" else (math.inf, math.exp(-20))  # of a token, or of the whole sum
    weights, stays = corrected(record, bound=bound, level=level, low=low, high=high, outside=outside)
    return {"weights": torch.where(stays, weights.clamp(min=least), 0.0)}


def verl_rejections(record: Record) -> Values:
    """Tokens or answers are left out whose pi_rollout / pi_old, our weight's inverse, lies outside of a range."""
    levels = {"token_k1": "token", "seq_sum_k1": "sequence", "seq_mean_k1": "geometric"}
    level = record.options.choose("rollout_rs", levels)
    low, high, outside = _range(record.options["rollout_rs_threshold"])
    if low is None:
        raise NotOurs("a range with one bound")
    stays = corrected(record, bound=20, level=level, low=1 / high, high=1 / low, outside=outside)[1]
    return {"mask": stays.double()}


def trl_ratio(record: Record) -> Values:
    """Truncated or masked weights of tokens and of whole answers."""
    levels, kinds = ("token", "sequence"), {"truncate": "clip", "mask": "mask"}
    modes = {f"{level}_{kind}": (level, outside) for level in levels for kind, outside in kinds.items()}
    level, outside = record.options.choose("vllm_importance_sampling_mode", modes)
    low = record.options["vllm_importance_sampling_clip_min"]
    high = record.options["vllm_importance_sampling_clip_max"]
    weights, stays = corrected(record, level=level, low=low, high=high, outside=outside)
    return {"importance_sampling_ratio": torch.where(stays, weights, 0.0)}


def _range(threshold: float | str) -> tuple[float | None, float, str]:
    """Gives the bounds in a threshold, "low_high" or high alone, and what becomes of weights beyond them."""
    try:
        *low, high = map(float, str(threshold).split("_"))
    except ValueError as error:
        raise NotOurs(f"threshold {threshold}") from error
    return (low[0], high, "mask") if low else (None, high, "clip")


COMPARISONS = {
    "verl_rollout_is_weights": Comparison(verl_weights),
    "verl_rollout_rejection_mask": Comparison(verl_rejections),
    "trl_vllm_is_ratio": Comparison(trl_ratio),
}
