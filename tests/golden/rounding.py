"""What tells a peer's numbers from a formula's: epsilons of its own, which are undone, and rounding, which is allowed.

Letters: B rows, T tokens.
"""

import itertools

import torch
from torch import Tensor

from tests.golden.vectors import Record

EPSILON = 1e-8
"""What verl and OpenRLHF add to the counts under their means."""
FLOAT32 = 2**-23
"""Distance from 1 to the next number in float32."""


def mean_over_more(record: Record, mode: str) -> Tensor | float:
    """Gives what a token's weight is of ours where the mean over a row's tokens has an epsilon added to its count."""
    if mode != "seq-mean-token-mean":
        return 1.0
    count = record.mask.sum(1, keepdim=True).double()
    return count / (count + EPSILON)


def whitened_over_more(record: Record, ours: Tensor, raw: Tensor) -> Tensor:
    """Gives our normalization as verl has it: mean and variance of `raw` have an epsilon added to their counts."""
    values, count = raw[record.mask], int(record.mask.sum())
    if count < 2 or record.dtype == "float32":  # where n + 1e-8 is n
        return ours
    mean = values.sum() / (count + EPSILON)
    variance = (values - mean).square().sum() / (count + EPSILON) * count / (count - 1)
    deviation = ours * (values.var() + EPSILON).sqrt() + values.mean() - mean
    return torch.where(record.mask, deviation / (variance + EPSILON).sqrt(), 0.0)


def of_float32(values: Tensor) -> float:
    """Gives how far a normalization may be off whose values and mean are in float32, each rounded more than once."""
    return float(4 * FLOAT32 * values.abs().max() / _deviation(values)) if len(values) else 0.0


def of_one_pass(values: Tensor) -> float:
    """Gives how far a normalization may be off whose variance is E[x^2] - E[x]^2 in float32, as slime's is."""
    if not len(values):
        return 0.0
    mean, deviation = values.mean(), _deviation(values)
    return float(2 * FLOAT32 * (mean / deviation).square() * (values - mean).abs().max() / deviation)


def in_float32(record: Record) -> float:
    """Gives how far a record in float32 may be off: exponents may be large, rewards larger than their spread."""
    return _of_exponents(record) + _of_rewards(record)


def _of_exponents(record: Record) -> float:
    largest = 0.0
    for name, other in itertools.pairwise(("rollout_log_prob", "old_log_prob", "log_prob", "ref_log_prob")):
        if name in record.inputs and other in record.inputs and record.mask.any():
            exponent = torch.where(record.mask, record.given(name) - record.given(other), 0.0).sum(1)
            largest = max(largest, float(exponent.abs().max()))
    return FLOAT32 * largest


def _of_rewards(record: Record) -> float:
    if "rewards" not in record.inputs or not record.inputs["rewards"]:
        return 0.0
    rewards = record.given("rewards")
    index = record.given("index") if "index" in record.inputs else torch.zeros_like(rewards)
    same = (index[:, None] == index).double()
    centered = rewards - same @ rewards / same.sum(1)
    in_groups = (same @ centered.square() / same.sum(1)).sqrt()
    divisors = [one for one in in_groups.tolist() if one > 1e-9]
    divisors += [float(_deviation(values)) for values in (rewards, centered)]
    return 2 * FLOAT32 * float(rewards.abs().max()) / min(1.0, *divisors)


def _deviation(values: Tensor) -> Tensor:
    return (values.var(correction=0) + EPSILON).sqrt()
