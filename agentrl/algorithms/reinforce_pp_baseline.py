"""REINFORCE++ w/ Baseline (arXiv:2501.03262): group baseline, then normalization over the whole batch.

    A'_i = R_i - mean of its group        A = (A' - mean) / (std + eps), over all action tokens of the batch

The KL to the reference is a separate k2 loss with the same weights. A group with one reward for all gives A' = 0.
"""

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import Singleton, centered, returns_and_groups
from agentrl.batch import Batch


class ReinforcePPBaselineConfig(AlgorithmConfig):
    """Knobs of REINFORCE++ w/ Baseline."""

    name: str = "reinforce_pp_baseline"
    kl_estimator: Literal["none", "k2", "k3"] = "k2"
    kl_coef: NonNegativeFloat = 1e-4
    """Ours: between the authors' published scripts (1e-5 for agents, 1e-4 for long reasoning runs)."""
    normalize_over: Literal["tokens", "trajectories"] = "tokens"
    """Whether each token or each trajectory counts once in the mean and the standard deviation."""
    std_ddof: Literal[0, 1] = 0
    """Divisor of the variance: count minus this. The authors' code uses 0."""
    std_eps: PositiveFloat = 1e-8
    """Added to the standard deviation."""
    singleton: Singleton = "zero"
    """Advantage, before normalization, of a trajectory alone in its group: zero, or its reward."""


class ReinforcePPBaseline(Algorithm[ReinforcePPBaselineConfig]):
    """Group-centered returns, normalized over the batch."""

    Config = ReinforcePPBaselineConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the normalized, group-centered return."""
        centered_returns = centered(*returns_and_groups(batch), singleton=self.config.singleton)
        tokens = torch.zeros_like(centered_returns).index_add(0, batch.trajectory, batch.action_mask.sum(1).double())
        count = tokens if self.config.normalize_over == "tokens" else (tokens > 0).double()
        mean = (count * centered_returns).sum() / count.sum().clamp(min=1)
        deviation = centered_returns - mean
        divisor = (count.sum() - self.config.std_ddof).clamp(min=1)
        std = ((count * deviation.square()).sum() / divisor).sqrt()
        return spread(deviation / (std + self.config.std_eps), batch)
