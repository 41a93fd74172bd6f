"""ReMax: REINFORCE with the greedy answer's return as the baseline (arXiv:2310.10505).

    A_i = R_i - R(greedy episode of the same task)

Each step plays every task once more at temperature 0. A task whose greedy episode failed in the environment gets 0.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import per_trajectory
from agentrl.batch import Batch
from agentrl.loss import Aggregate
from agentrl.loss.config import Ratio


class ReMaxConfig(AlgorithmConfig):
    """Knobs of ReMax."""

    name: str = "remax"
    ratio: Ratio = "none"
    aggregate: Aggregate = "seq_mean_token_sum"


class ReMax(Algorithm[ReMaxConfig]):
    """The return less the greedy policy's."""

    Config = ReMaxConfig
    needs = frozenset({"greedy"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the return less the greedy policy's."""
        assert batch.baseline is not None, "ReMax needs the greedy policy's returns"
        advantage = per_trajectory(batch.episode_return.double() - batch.baseline.double(), batch)
        return spread(torch.where(advantage.isnan(), 0.0, advantage), batch)
