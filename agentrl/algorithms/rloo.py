"""RLOO: REINFORCE with the others of the group as the baseline (arXiv:2402.14740).

    A_i = R_i - mean of the others in its group

The whole answer is one action: every token has weight 1/S and log pi itself is raised, without ratio or clip.
"""

from jaxtyping import Float
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import Singleton, left_out, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate
from agentrl.loss.config import Ratio


class RLOOConfig(AlgorithmConfig):
    """Knobs of RLOO."""

    name: str = "rloo"
    ratio: Ratio = "none"
    aggregate: Aggregate = "seq_mean_token_sum"
    singleton: Singleton = "zero"
    """Advantage of a trajectory alone in its group: zero, or its reward."""


class RLOO(Algorithm[RLOOConfig]):
    """The return less the mean return of the others."""

    Config = RLOOConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the leave-one-out advantage."""
        return spread(left_out(*returns_and_groups(batch), singleton=self.config.singleton), batch)
