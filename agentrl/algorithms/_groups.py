"""Statistics over the trajectories of a group; each trajectory counts once, however many rows it has.

Letters: B rows, N trajectories, G groups. A group is a task of this step, never a row position. All sums are in
float64: with float32 a group of equal inexact rewards can get advantages of any size.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from agentrl.batch import Batch
from agentrl.loss import sum_by

Singleton = Literal["zero", "keep"]
"""What a group of one gets: 0, since it says nothing, or its reward less 0."""


def returns_and_groups(batch: Batch) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
    """Gives each trajectory's return (float64) and its group, numbered from 0."""
    returns, groups = per_trajectory(batch.episode_return.double(), batch), per_trajectory(batch.group, batch)
    return returns, torch.unique(groups, return_inverse=True)[1]


def per_trajectory(row_values: Tensor, batch: Batch) -> Tensor:
    """Gives each trajectory the value that all its rows have: [B] to [N]."""
    num = int(batch.trajectory.max()) + 1 if len(batch.trajectory) else 0
    return row_values.new_zeros(num).index_copy(0, batch.trajectory, row_values)


def centered(
    returns: Float[Tensor, " N"], group: Int[Tensor, " N"], *, singleton: Singleton = "zero"
) -> Float[Tensor, " N"]:
    """Gives R_i minus the mean of its group, exactly 0 where the whole group has one reward."""
    size = group_size(group)
    difference = returns - (sum_by(returns, group) / size)[group]
    difference = torch.where(group_spread(returns, group)[group] == 0, 0.0, difference)
    return torch.where(size[group] > 1, difference, returns if singleton == "keep" else 0.0)


def left_out(
    returns: Float[Tensor, " N"], group: Int[Tensor, " N"], *, singleton: Singleton = "zero"
) -> Float[Tensor, " N"]:
    """Gives R_i minus the mean of the others in its group."""
    size = group_size(group)[group]
    return centered(returns, group, singleton=singleton) * torch.where(size > 1, size / (size - 1).clamp(min=1), 1.0)


def group_std(returns: Float[Tensor, " N"], group: Int[Tensor, " N"], *, ddof: int) -> Float[Tensor, " N"]:
    """Gives each trajectory the standard deviation of its group, with divisor size - ddof (1 for a group of one)."""
    size = group_size(group)
    mean = sum_by(returns, group) / size
    variance = sum_by((returns - mean[group]).square(), group) / (size - ddof).clamp(min=1)
    return torch.where(size > 1, variance.sqrt(), 1.0)[group]


def group_size(group: Int[Tensor, " N"]) -> Float[Tensor, " G"]:
    """Gives how many trajectories each group has."""
    return sum_by(torch.ones(len(group), dtype=torch.float64), group)


def group_spread(returns: Float[Tensor, " N"], group: Int[Tensor, " N"]) -> Float[Tensor, " G"]:
    """Gives max - min of each group."""
    num = int(group.max()) + 1 if len(group) else 0
    empty = returns.new_zeros(num)
    high = empty.scatter_reduce(0, group, returns, "amax", include_self=False)
    return high - empty.scatter_reduce(0, group, returns, "amin", include_self=False)
