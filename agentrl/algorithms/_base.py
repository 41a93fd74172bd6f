"""What an algorithm decides: advantages, which tokens count, and the loss knobs its paper chose."""

from typing import ClassVar, Generic, Literal, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from agentrl.batch import Batch
from agentrl.loss import LossConfig

Need = Literal["groups", "reference", "current_logprobs"]


class AlgorithmConfig(LossConfig):
    """The knobs every algorithm has; subclasses add their own and set their paper's defaults."""

    name: str
    """The algorithm's file name."""


ConfigT = TypeVar("ConfigT", bound=AlgorithmConfig)


class Algorithm(Generic[ConfigT]):
    """Credit and filter of one algorithm; the loss core does the rest.

    Advantages are computed once per batch of trajectories; `keep` once per optimizer step.
    """

    Config: ClassVar[type[AlgorithmConfig]]
    needs: ClassVar[frozenset[Need]] = frozenset()
    """`groups`: several trajectories of each task. `reference`: the frozen initial policy. `current_logprobs`: `keep`
    ranks tokens under the policy as it is at the start of each optimizer step."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @property
    def requires(self) -> frozenset[Need]:
        """What this configuration needs: `needs`, and the reference when a KL loss is on."""
        reference: frozenset[Need] = frozenset({"reference"})
        return self.needs | reference if self.config.kl_estimator != "none" else self.needs

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the advantage of each action token, 0 elsewhere."""
        raise NotImplementedError

    def keep(
        self, batch: Batch, advantages: Float[Tensor, "B T"], logprobs: Float[Tensor, "B T"]
    ) -> Bool[Tensor, "B T"]:
        """Gives the action tokens whose loss counts; denominators stay. `logprobs` are the current policy's."""
        del advantages, logprobs
        return batch.action_mask


def spread(per_trajectory: Float[Tensor, " N"], batch: Batch) -> Float[Tensor, "B T"]:
    """Gives each action token its trajectory's value, 0 elsewhere."""
    return torch.where(batch.action_mask, per_trajectory[batch.trajectory, None], 0.0)
