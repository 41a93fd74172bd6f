"""CISPO: clipped importance sampling policy optimization (arXiv:2506.13585).

    objective: mean over tokens of stop_gradient(clip(rho_t)) A_i log pi_t

A_i is GRPO's. The ratio's weight is bounded, but no token ever loses its gradient. There is no lower bound.
"""

from pydantic import NonNegativeFloat

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.loss import Aggregate, KLEstimator
from agentrl.loss.config import Surrogate


class CISPOConfig(GRPOConfig):
    """Knobs of CISPO."""

    name: str = "cispo"
    surrogate: Surrogate = "cispo"
    clip_low: NonNegativeFloat | None = None
    clip_high: NonNegativeFloat | None = 4.0
    """The weight is at most 1 + clip_high; 5 in public implementations, as the paper gives no number."""
    aggregate: Aggregate = "token_mean"
    kl_estimator: KLEstimator = "none"
    kl_coef: NonNegativeFloat = 0.0


class CISPO(GRPO[CISPOConfig]):
    """GRPO's advantage on log pi, weighted by the clipped ratio."""

    Config = CISPOConfig
