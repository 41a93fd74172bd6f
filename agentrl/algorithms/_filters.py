"""Token filters: which action tokens' loss counts."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def filter_negatives(
    logprobs: Float[Tensor, "B T"],
    action_mask: Bool[Tensor, "B T"],
    trajectory: Int[Tensor, " B"],
    negative: Bool[Tensor, " B"],
    tau: float,
) -> Bool[Tensor, "B T"]:
    """Gives the mask of negative token filtering (NTF, arXiv:2606.17250, Eq. 8).

    Of each negative trajectory's T action tokens, all its rows together, the floor(tau T) most probable are dropped; of
    equally probable ones the earlier stays. At least one token stays, unless tau = 1, which keeps positives only. All
    tokens of other trajectories stay.
    """
    keep = action_mask.clone()
    rows, columns = torch.nonzero(action_mask & negative[:, None], as_tuple=True)
    owner = trajectory[rows]
    values = logprobs.detach()[rows, columns].double()
    # Two stable sorts: by probability, then by owner, leave each trajectory's tokens together, least probable first.
    order = torch.argsort(values, stable=True)
    order = order[torch.argsort(owner[order], stable=True)]
    _, sizes = torch.unique_consecutive(owner[order], return_counts=True)
    kept = sizes - torch.floor(tau * sizes.double() + 1e-9).long()
    kept = kept if tau >= 1 else kept.clamp(min=1)
    rank = torch.arange(len(order)) - torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    dropped = order[rank >= torch.repeat_interleave(kept, sizes)]
    keep[rows[dropped], columns[dropped]] = False
    return keep


def most_uncertain(entropy: Float[Tensor, "B T"], action_mask: Bool[Tensor, "B T"], frac: float) -> Bool[Tensor, "B T"]:
    """Gives the action tokens where the policy was least certain: the highest `frac` of the batch (arXiv:2506.01939).

    At least one stays; as many as tie with the last that stays do too.
    """
    values = entropy[action_mask]
    if not len(values):
        return action_mask.clone()
    num = max(1, math.floor(frac * len(values) + 1e-9))
    return action_mask & (entropy >= torch.topk(values, num).values[-1])
