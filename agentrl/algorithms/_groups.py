"""Statistics over the trajectories of a group; each trajectory counts once, however many rows it has.

Letters: B rows, N trajectories. A group is a task of this step, never a row position. All sums are in float64: with
float32 a group of equal inexact rewards can get advantages of any size.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from agentrl.batch import Batch

Singleton = Literal["zero", "keep"]
"""What a group of one gets: 0, since it says nothing, or its reward less 0."""


def returns_and_groups(batch: Batch) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
    """Gives each trajectory's return (float64) and its group, numbered from 0."""
    num = int(batch.trajectory.max()) + 1 if len(batch.trajectory) else 0
    returns = torch.zeros(num, dtype=torch.float64).index_copy(0, batch.trajectory, batch.episode_return.double())
    groups = torch.zeros(num, dtype=torch.int64).index_copy(0, batch.trajectory, batch.group)
    return returns, torch.unique(groups, return_inverse=True)[1]


def centered(
    returns: Float[Tensor, " N"], group: Int[Tensor, " N"], *, singleton: Singleton = "zero"
) -> Float[Tensor, " N"]:
    """Gives R_i minus the mean of its group, exactly 0 where the whole group has one reward."""
    size = _sum_by(torch.ones_like(returns), group)
    difference = returns - (_sum_by(returns, group) / size)[group]
    difference = torch.where(_spread_by(returns, group)[group] == 0, 0.0, difference)
    return torch.where(size[group] > 1, difference, returns if singleton == "keep" else 0.0)


def group_std(returns: Float[Tensor, " N"], group: Int[Tensor, " N"], *, ddof: int) -> Float[Tensor, " N"]:
    """Gives each trajectory the standard deviation of its group, with divisor size - ddof (1 for a group of one)."""
    size = _sum_by(torch.ones_like(returns), group)
    mean = _sum_by(returns, group) / size
    variance = _sum_by((returns - mean[group]).square(), group) / (size - ddof).clamp(min=1)
    return torch.where(size > 1, variance.sqrt(), 1.0)[group]


def _sum_by(values: Float[Tensor, " N"], group: Int[Tensor, " N"]) -> Float[Tensor, " G"]:
    num = int(group.max()) + 1 if len(group) else 0
    return values.new_zeros(num).index_add(0, group, values)


def _spread_by(values: Float[Tensor, " N"], group: Int[Tensor, " N"]) -> Float[Tensor, " G"]:
    """Gives max - min of each group."""
    num = int(group.max()) + 1 if len(group) else 0
    empty = values.new_zeros(num)
    high = empty.scatter_reduce(0, group, values, "amax", include_self=False)
    return high - empty.scatter_reduce(0, group, values, "amin", include_self=False)
