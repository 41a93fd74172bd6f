"""FlashREINFORCE: single rollouts, no whitening, and the engine's mismatch taken seriously (NVIDIA, 2026).

    A_i = R_i - mean over the batch        weight of a token: pi_old / pi_rollout, from the engine's own probabilities

A trajectory whose mean binary KL from engine to trainer exceeds correction.max_divergence is dropped. One optimizer
step for each batch, so there is no ratio and no clip.
"""

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import centered, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate, Correction
from agentrl.loss.config import Ratio


class FlashCorrection(Correction):
    """The correction of the published runs: true ratios without a bound, and a gate on whole trajectories."""

    level: Literal["none", "token", "sequence", "geometric"] = "token"
    high: PositiveFloat | None = None
    max_divergence: PositiveFloat | None = 2e-3
    """A trajectory whose mean binary KL from engine to trainer, in nats, exceeds this is dropped whole; published runs
    use 1e-3 to 5e-3."""


class FlashReinforceConfig(AlgorithmConfig):
    """Knobs of FlashREINFORCE."""

    name: str = "flash_reinforce"
    ratio: Ratio = "none"
    aggregate: Aggregate = "seq_mean_token_mean"
    correction: FlashCorrection = FlashCorrection()  # pyright: ignore[reportIncompatibleVariableOverride] # frozen


class FlashReinforce(Algorithm[FlashReinforceConfig]):
    """The return less the batch's mean."""

    Config = FlashReinforceConfig

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the batch-centered return."""
        returns, group = returns_and_groups(batch)
        return spread(centered(returns, torch.zeros_like(group)), batch)
