"""GRPO: group-relative policy optimization (arXiv:2402.03300).

    A_i = (R_i - mean of its group) / (std of its group + eps)

Weights 1/T_i, then the mean over trajectories; k3 loss to the reference. A group with one reward for all gives 0.
"""

from typing import Literal, TypeVar

from jaxtyping import Float
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import Singleton, centered, group_std, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate, KLEstimator


class GRPOConfig(AlgorithmConfig):
    """Knobs of GRPO."""

    name: str = "grpo"
    aggregate: Aggregate = "seq_mean_token_mean"
    kl_estimator: KLEstimator = "k3"
    kl_coef: NonNegativeFloat = 0.04
    std_ddof: Literal[0, 1] = 1
    """Divisor of the variance: group size minus this. Public implementations use 1."""
    std_eps: PositiveFloat = 1e-6
    """Added to the standard deviation."""
    singleton: Singleton = "zero"
    """Advantage of a trajectory alone in its group: zero, or its reward."""


ConfigT = TypeVar("ConfigT", bound=GRPOConfig)


class GRPO(Algorithm[ConfigT]):
    """The z-score of a return within its group."""

    Config = GRPOConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the z-score within the group."""
        returns, group = returns_and_groups(batch)
        std = group_std(returns, group, ddof=self.config.std_ddof)
        return spread(centered(returns, group, singleton=self.config.singleton) / (std + self.config.std_eps), batch)
