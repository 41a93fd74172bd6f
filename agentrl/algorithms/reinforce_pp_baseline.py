"""REINFORCE++ w/ Baseline (arXiv:2501.03262): group baseline, then normalization over the whole batch.

    A'_i = R_i - mean of its group        A = (A' - mean) / (std + eps), over all action tokens of the batch

The KL to the reference is a separate k2 loss with the same weights. A group with one reward for all gives A' = 0.
"""

from jaxtyping import Float
from pydantic import NonNegativeFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, spread
from agentrl.algorithms._groups import Singleton, centered, returns_and_groups
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.batch import Batch
from agentrl.loss import KLEstimator


class ReinforcePPBaselineConfig(NormalizedConfig):
    """Knobs of REINFORCE++ w/ Baseline."""

    name: str = "reinforce_pp_baseline"
    kl_estimator: KLEstimator = "k2"
    kl_coef: NonNegativeFloat = 1e-4
    """Ours: between the authors' published scripts (1e-5 for agents, 1e-4 for long reasoning runs)."""
    singleton: Singleton = "zero"
    """Advantage, before normalization, of a trajectory alone in its group: zero, or its reward."""


class ReinforcePPBaseline(Algorithm[ReinforcePPBaselineConfig]):
    """Group-centered returns, normalized over the batch."""

    Config = ReinforcePPBaselineConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the normalized, group-centered return."""
        returns = centered(*returns_and_groups(batch), singleton=self.config.singleton)
        return normalized(spread(returns, batch), batch, self.config)
