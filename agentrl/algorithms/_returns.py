"""What follows from the rewards of single tokens: returns and generalized advantages.

Letters: B rows, T tokens, N trajectories, L action tokens of the longest trajectory. Time runs over a trajectory's
action tokens alone, across all its rows: prompts and observations neither discount nor interrupt.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from agentrl.batch import Batch


@dataclass(frozen=True)
class Sequences:
    """Where the action tokens of each trajectory lie, in the order they were sampled."""

    row: Int[Tensor, " n"]
    column: Int[Tensor, " n"]
    trajectory: Int[Tensor, " n"]
    place: Int[Tensor, " n"]
    """Number of the token in its trajectory, from 0."""
    lengths: Int[Tensor, " N"]

    @classmethod
    def of(cls, batch: Batch) -> "Sequences":
        """Finds them: by trajectory, then turn, then column."""
        row, column = torch.nonzero(batch.action_mask, as_tuple=True)
        order = torch.argsort(batch.turn[row, column], stable=True)
        order = order[torch.argsort(batch.trajectory[row][order], stable=True)]
        row, column = row[order], column[order]
        trajectory = batch.trajectory[row]
        num = int(batch.trajectory.max()) + 1 if len(batch.trajectory) else 0
        lengths = torch.bincount(trajectory, minlength=num)
        place = torch.arange(len(row)) - (lengths.cumsum(0) - lengths)[trajectory]
        return cls(row, column, trajectory, place, lengths)

    def gather(self, values: Float[Tensor, "B T"]) -> Float[Tensor, "N L"]:
        """Gives each trajectory's values in one row, in float64, 0 after its end."""
        longest = int(self.lengths.max()) if len(self.lengths) else 0
        out = torch.zeros(len(self.lengths), longest, dtype=torch.float64)
        return out.index_put((self.trajectory, self.place), values[self.row, self.column].double())

    def scatter(self, values: Float[Tensor, "N L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the values back to the tokens they are about, 0 off the mask."""
        out = torch.zeros(batch.action_mask.shape, dtype=values.dtype)
        return out.index_put((self.row, self.column), values[self.trajectory, self.place])


def returns_to_go(batch: Batch, gamma: float) -> Float[Tensor, "B T"]:
    """Gives sum over s >= t of gamma^(s-t) r_s at each action token, 0 elsewhere."""
    sequences = Sequences.of(batch)
    rewards = sequences.gather(batch.rewards)
    if gamma == 1:
        return sequences.scatter(rewards.flip(1).cumsum(1).flip(1), batch)
    returns, later = torch.zeros_like(rewards), torch.zeros(len(rewards), dtype=torch.float64)
    for t in reversed(range(rewards.shape[1])):
        later = rewards[:, t] + gamma * later
        returns[:, t] = later
    return sequences.scatter(returns, batch)


def generalized_advantages(batch: Batch, *, gamma: float, gae_lambda: float) -> Float[Tensor, "B T"]:
    """Gives GAE(gamma, lambda) at each action token (arXiv:1506.02438, Eq. 16).

    Its successor is the next action token. The value after the last one is 0: episodes are scored when they end, also
    by a limit.
    """
    assert batch.values is not None, "annotate the batch first"
    sequences = Sequences.of(batch)
    rewards, values = sequences.gather(batch.rewards), sequences.gather(batch.values)
    following = torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], dim=1)
    error = rewards + gamma * following - values
    advantages, later = torch.zeros_like(error), torch.zeros(len(error), dtype=torch.float64)
    for t in reversed(range(error.shape[1])):
        later = error[:, t] + gamma * gae_lambda * later
        advantages[:, t] = later
    return sequences.scatter(advantages, batch)
