"""GSPO: group sequence policy optimization (arXiv:2507.18071).

    s_i = (pi(o_i) / pi_old(o_i))^(1/T_i)        objective: mean over i of min(s_i A_i, clip(s_i) A_i)

A_i is GRPO's. One ratio for the whole trajectory, clipped in a far narrower band than single tokens are; every
trajectory counts once.
"""

from pydantic import NonNegativeFloat

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.loss import KLEstimator
from agentrl.loss.config import Ratio


class GSPOConfig(GRPOConfig):
    """Knobs of GSPO."""

    name: str = "gspo"
    ratio: Ratio = "sequence"
    clip_low: NonNegativeFloat | None = 3e-4
    clip_high: NonNegativeFloat | None = 4e-4
    kl_estimator: KLEstimator = "none"
    kl_coef: NonNegativeFloat = 0.0


class GSPO(GRPO[GSPOConfig]):
    """GRPO with the trajectory's own ratio."""

    Config = GSPOConfig
