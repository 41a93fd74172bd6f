"""Episodes of one turn and optimizer steps on them, small enough to be worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.batch import Batch, make_batch
from agentrl.training.plan import plan, step_loss
from tests.episodes import episode

OLD = -3.0
"""Log-probability of every token under the old policy."""


def outcomes(
    returns: Sequence[float], *, groups: Sequence[int] | None = None, tokens: Sequence[int] | None = None
) -> Batch:
    """Gives episodes with these returns; of one group, and of one token each, unless told otherwise."""
    groups, tokens = groups or [0] * len(returns), tokens or [1] * len(returns)
    return make_batch(
        [episode(i, [tokens[i]], episode_return=returns[i], group=groups[i]) for i in range(len(returns))]
    )


def by_episode(values: Tensor, batch: Batch) -> list[float]:
    """Gives the value that all tokens of an episode share, episode by episode."""
    found = [values[batch.trajectory == i][batch.action_mask[batch.trajectory == i]] for i in owners(batch)]
    assert all(bool((one == one[0]).all()) for one in found)
    return [float(one[0]) for one in found]


def by_token(values: Tensor, batch: Batch) -> list[list[float]]:
    """Gives the values of the action tokens of each episode, in the order they were sampled."""
    return [values[batch.trajectory == i][batch.action_mask[batch.trajectory == i]].tolist() for i in owners(batch)]


def owners(batch: Batch) -> list[int]:
    """Gives the numbers of the episodes."""
    return sorted({*batch.trajectory.tolist()})


def filled(batch: Batch, rows: Sequence[Sequence[float]]) -> Tensor:
    """Gives the action tokens of each row these values, and all else NaN."""
    out = torch.full(batch.input_ids.shape, math.nan, dtype=torch.float64)
    out[batch.action_mask] = torch.tensor([value for row in rows for value in row], dtype=torch.float64)
    return out


@dataclass(frozen=True)
class Step:
    """The loss of one optimizer step and its gradient by log pi, episode by episode."""

    loss: float
    gradient: list[list[float]]


def step(
    algorithm: Algorithm,
    batch: Batch,
    ratios: Sequence[Sequence[float]] | None = None,
    *,
    ref_ratios: Sequence[Sequence[float]] | None = None,
) -> Step:
    """Gives one optimizer step at these ratios pi / pi_old, and pi / pi_ref, of each token; 1 unless told otherwise."""
    ones = [[1.0] * int(num) for num in batch.action_mask.sum(1)]
    current = OLD + filled(batch, ratios or ones).log()
    batch = replace(
        batch,
        old_logprobs=torch.full_like(current, OLD),
        ref_logprobs=current - filled(batch, ref_ratios or ones).log(),
    )
    planned = plan(algorithm, batch, algorithm.credit(batch), current)
    logprobs = current.clone().requires_grad_()
    output = step_loss(algorithm, planned, logprobs)
    output.loss.backward()
    assert logprobs.grad is not None
    assert not logprobs.grad[~batch.action_mask].any()
    sums = {**output.sums, **planned.sums}
    return Step(float(sums["policy_loss"] + sums["kl_loss"]), by_token(logprobs.grad, batch))
