"""GMPO: geometric-mean policy optimization (arXiv:2507.20673).

    s_i = exp(mean over t of clip(log rho_t))        objective: mean over i of s_i A_i

A_i is GRPO's. The clip is of each token's log-ratio, above for good trajectories and below for bad ones, in
(-clip_low, clip_high): (e^-0.4, e^0.4) by default. One outlier among the ratios moves a geometric mean little.
"""

from pydantic import NonNegativeFloat

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.loss import KLEstimator
from agentrl.loss.config import Ratio


class GMPOConfig(GRPOConfig):
    """Knobs of GMPO."""

    name: str = "gmpo"
    ratio: Ratio = "geometric"
    clip_low: NonNegativeFloat | None = 0.4
    """A bad trajectory's log-ratios count no lower than -clip_low; null does not clip."""
    clip_high: NonNegativeFloat | None = 0.4
    """A good trajectory's log-ratios count no higher than clip_high; null does not clip."""
    kl_estimator: KLEstimator = "none"
    kl_coef: NonNegativeFloat = 0.0


class GMPO(GRPO[GMPOConfig]):
    """GRPO with the geometric mean of clipped ratios."""

    Config = GMPOConfig
