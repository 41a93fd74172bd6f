"""C-RF: class-balanced REINFORCE with one-sided clips (arXiv:2606.17250, Eq. 7). One rollout per task is enough.

    L = -1/2 [ mean over positives of l+  -  mean over negatives of l- ]
    l+ = 1/T sum_t min(rho_t, 1 + clip_high)      l- = 1/T sum_t max(rho_t, 1 - clip_low)

This is PPO's clip with A = +1 or -1 and weights 1/(2 N_class T_i), which is how it is computed here. The classes are
counted over one optimizer step; an empty class adds nothing and the other keeps its half.
"""

from typing import Literal, TypeVar

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import centered, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate


class CRFConfig(AlgorithmConfig):
    """Knobs of C-RF."""

    name: str = "c_rf"
    clip_low: NonNegativeFloat | None = 0.2
    clip_high: NonNegativeFloat | None = 10.0
    """Nearly no clip: what the published ALFWorld runs used. The paper's formula has one epsilon for both sides."""
    aggregate: Aggregate = "class_balanced"
    baseline: Literal["zero", "batch_mean", "group_mean"] = "zero"
    """A trajectory is positive when its return exceeds this: zero suits binary rewards, the means real-valued ones."""


ConfigT = TypeVar("ConfigT", bound=CRFConfig)


class CRF(Algorithm[ConfigT]):
    """A_i = +1 for positive trajectories, -1 for the others."""

    Config = CRFConfig

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives +1 or -1."""
        returns, group = returns_and_groups(batch)
        match self.config.baseline:
            case "zero":
                margin = returns
            case "batch_mean":
                margin = centered(returns, torch.zeros_like(group))
            case _:
                margin = centered(returns, group)
        return spread(torch.where(margin > 0, 1.0, -1.0).double(), batch)
