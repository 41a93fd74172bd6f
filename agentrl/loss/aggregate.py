"""How much each token counts: weights made once from the counts of one whole optimizer step.

Letters: B rows, T tokens, N trajectories.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from agentrl.loss.config import Aggregate


def token_weights(
    aggregate: Aggregate,
    action_mask: Bool[Tensor, "B T"],
    trajectory: Int[Tensor, " B"],
    *,
    positive: Bool[Tensor, " B"] | None = None,
    group: Int[Tensor, " B"] | None = None,
    horizon: int | None = None,
) -> Float[Tensor, "B T"]:
    """Gives each action token's weight, from the counts of one whole optimizer step; float64, 0 off the mask.

    With n tokens in all, S trajectories that have any, T_i tokens of trajectory i over all its rows, n_g tokens of the
    group of trajectory i, G groups that have any, S_c trajectories of the class (positive or not) of trajectory i:

        token_mean               1 / n
        group_token_mean         1 / (G n_g)         (DAPO as printed, arXiv:2503.14476, Eq. 8)
        seq_mean_token_mean      1 / (S T_i)
        seq_mean_token_sum       1 / S
        seq_mean_token_sum_norm  1 / (S horizon)
        class_balanced           1 / (2 S_c T_i)     (C-RF, arXiv:2606.17250, Eq. 7; an empty class adds nothing)
    """
    per_row = action_mask.sum(1, dtype=torch.float64)
    lengths = sum_by(per_row, trajectory)
    alive = lengths > 0
    size, count = lengths.clamp(min=1)[trajectory], alive.sum().clamp(min=1)
    match aggregate:
        case "token_mean":
            weight = torch.ones_like(size) / per_row.sum().clamp(min=1)
        case "group_token_mean":
            if group is None:
                raise ValueError("group_token_mean needs the group of each row")
            numbered = torch.unique(group, return_inverse=True)[1]
            tokens = sum_by(per_row, numbered)
            weight = 1 / ((tokens > 0).sum().clamp(min=1) * tokens.clamp(min=1)[numbered])
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
            of_class = sum_by(positive.double(), trajectory) > 0
            num_positive = (alive & of_class).sum().clamp(min=1)
            num_negative = (alive & ~of_class).sum().clamp(min=1)
            weight = 1 / (2 * torch.where(of_class[trajectory], num_positive, num_negative) * size)
    return torch.where(action_mask, weight[:, None], 0.0)


def sum_by(values: Float[Tensor, " B"], owner: Int[Tensor, " B"]) -> Float[Tensor, " N"]:
    """Gives the sum of the values of each owner, who are numbered from 0."""
    num = int(owner.max()) + 1 if len(owner) else 0
    return values.new_zeros(num).index_add(0, owner, values)
