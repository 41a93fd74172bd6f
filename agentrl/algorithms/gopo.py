"""GOPO: group orthogonalized policy optimization (arXiv:2602.21269).

    objective: mean of rho_t A_i - mu/2 (rho_t - 1)^2        mu = quadratic_coef

A_i is GRPO's. A quadratic penalty on the ratio takes the place of clip and KL: the pull towards pi_old grows with the
distance and never vanishes. The paper works with ratios of actions; we take tokens, as in its use for language models,
and ratio: sequence has the other reading.
"""

from pydantic import NonNegativeFloat

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.loss import KLEstimator
from agentrl.loss.config import Surrogate


class GOPOConfig(GRPOConfig):
    """Knobs of GOPO."""

    name: str = "gopo"
    surrogate: Surrogate = "quadratic"
    kl_estimator: KLEstimator = "none"
    kl_coef: NonNegativeFloat = 0.0


class GOPO(GRPO[GOPOConfig]):
    """GRPO's advantage under a quadratic penalty on the ratio."""

    Config = GOPOConfig
