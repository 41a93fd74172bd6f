"""REINFORCE++ (arXiv:2501.03262): no critic, no groups; one normalization over the whole batch.

    A'_t = sum over s >= t of (r_s - kl_coef k1_s)        A = (A' - mean) / (std + eps), over all action tokens

k1_s = log pi_old - log pi_ref of the sampled token: the KL is in the reward. One rollout per task is enough. Rewards of
single turns reach the tokens up to their own turn, so a process reward needs nothing more.
"""

from typing import Annotated, Literal, TypeVar

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.algorithms._returns import returns_to_go
from agentrl.batch import Batch
from agentrl.loss import KLEstimator


class ReinforcePPConfig(NormalizedConfig):
    """Knobs of REINFORCE++."""

    name: str = "reinforce_pp"
    kl_estimator: KLEstimator = "k1"
    kl_coef: Annotated[float, Field(ge=0)] = 1e-4
    """Weight of the KL in the reward; ours: between the authors' published scripts (1e-5 for agents, 1e-3 for chat)."""
    kl_in: Literal["loss", "reward"] = "reward"
    gamma: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Discount for each action token; 1 in the paper."""


ConfigT = TypeVar("ConfigT", bound=ReinforcePPConfig)


class ReinforcePP(Algorithm[ConfigT]):
    """The return from each token on, normalized over the batch."""

    Config = ReinforcePPConfig

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the normalized return from each action token on."""
        return normalized(returns_to_go(batch, self.config.gamma), batch, self.config)
