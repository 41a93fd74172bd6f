"""Dr. GRPO: GRPO done right, without its two biases (arXiv:2503.20783).

    A_i = R_i - mean of its group        weights 1 / (S horizon)

No division by the group's deviation, which favors tasks that are nearly solved or nearly hopeless, and a constant
divisor in place of 1/T_i, which favors long failures. No KL.
"""

from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import Singleton, centered, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate


class DrGRPOConfig(AlgorithmConfig):
    """Knobs of Dr. GRPO."""

    name: str = "dr_grpo"
    aggregate: Aggregate = "seq_mean_token_sum_norm"
    horizon: PositiveInt | None = 512
    """Constant divisor, in tokens; the tokens an episode may have. 512, the default, is ours: choose your own."""
    singleton: Singleton = "zero"
    """Advantage of a trajectory alone in its group: zero, or its reward."""


class DrGRPO(Algorithm[DrGRPOConfig]):
    """The return less the mean of its group."""

    Config = DrGRPOConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the group-centered return."""
        return spread(centered(*returns_and_groups(batch), singleton=self.config.singleton), batch)
