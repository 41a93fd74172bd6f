"""GVPO: group variance policy optimization (arXiv:2504.19599).

    loss of a group: 1/(k - 1) sum over i of 1/2 ((b x_i - mean b x) - (R_i - mean R))^2        mean over groups

x_i = log pi(o_i) / pi_old(o_i) of the whole trajectory, b = gvpo_coef. Its only minimum is the optimum of the reward
less b KL(pi || pi_old), whatever policy sampled.
"""

from jaxtyping import Float
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import centered, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate
from agentrl.loss.config import Surrogate


class GVPOConfig(AlgorithmConfig):
    """Knobs of GVPO."""

    name: str = "gvpo"
    surrogate: Surrogate = "gvpo"
    aggregate: Aggregate = "seq_mean_token_mean"


class GVPO(Algorithm[GVPOConfig]):
    """The group-centered return, as the target of a regression."""

    Config = GVPOConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the group-centered return."""
        return spread(centered(*returns_and_groups(batch)), batch)
