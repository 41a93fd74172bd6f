"""W-REINFORCE: failures teach, successes a little (arXiv:2506.01347).

    A_i = positive_weight for successes, -1 for the others

Learning from failures alone (positive_weight 0) keeps the policy's diversity; a little weight on successes keeps their
rate up. beta_minus 0 with positive_weight 1 is the other end: successes only.
"""

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import returns_and_groups
from agentrl.batch import Batch


class WReinforceConfig(AlgorithmConfig):
    """Knobs of W-REINFORCE."""

    name: str = "w_reinforce"
    positive_weight: NonNegativeFloat = 0.1
    """Advantage of a success, the paper's lambda."""


class WReinforce(Algorithm[WReinforceConfig]):
    """A small constant for successes, -1 for failures."""

    Config = WReinforceConfig

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives positive_weight where the return is positive, else -1."""
        returns, _ = returns_and_groups(batch)
        return spread(torch.where(returns > 0, self.config.positive_weight, -torch.ones_like(returns)), batch)
