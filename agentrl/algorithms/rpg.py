"""RPG: regularized policy gradient (arXiv:2505.17508), RPG-REINFORCE with the unnormalized reverse KL.

    gradient: mean of clip(rho_t) A_i grad log pi_t  -  kl_coef rho_t x_t grad log pi_t        x = log pi - log pi_ref

A_i is GRPO's. The ratio's weight is clipped and constant, and the KL carries the ratio too, which is what makes it the
gradient of KL(pi || pi_ref) for tokens that an older policy sampled. The paper refreshes the reference as it trains;
ours stays the initial policy.
"""

from pydantic import NonNegativeFloat

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.loss import Aggregate
from agentrl.loss.config import Surrogate


class RPGConfig(GRPOConfig):
    """Knobs of RPG."""

    name: str = "rpg"
    surrogate: Surrogate = "cispo"
    clip_low: NonNegativeFloat | None = 0.2
    clip_high: NonNegativeFloat | None = 0.28
    aggregate: Aggregate = "token_mean"
    kl_coef: NonNegativeFloat = 1e-4
    """Ours: small, as the reference stays the initial policy."""
    kl_importance: bool = True


class RPG(GRPO[RPGConfig]):
    """GRPO's advantage on log pi, with an off-policy KL."""

    Config = RPGConfig
