"""DAPO: decoupled clip and dynamic sampling (arXiv:2503.14476).

    A_i: GRPO's z-score within the group        clip (1 - 0.2, 1 + 0.28), token mean, no KL

Groups whose returns are all equal are replaced by new tasks (max_refills), answers that a token limit cut off can be
left out (drop_truncated), and answers that come close to the limit pay: 0 up to limit - buffer tokens, falling linearly
to -1 at the limit, -1 beyond.
"""

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from agentrl.algorithms._base import spread
from agentrl.algorithms._groups import centered, group_std, returns_and_groups
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import Batch
from agentrl.loss import Aggregate, KLEstimator, sum_by


class DAPOConfig(GRPOConfig):
    """Knobs of DAPO."""

    name: str = "dapo"
    clip_high: NonNegativeFloat | None = 0.28
    aggregate: Aggregate = "token_mean"
    kl_estimator: KLEstimator = "none"
    kl_coef: NonNegativeFloat = 0.0
    max_refills: NonNegativeInt = 10
    """Times a step plays new tasks in place of groups whose returns are all equal; 10 as in public implementations."""
    overlong_limit: PositiveInt | None = None
    """Action tokens of an episode at which the soft overlong penalty has grown to 1; null, the default, has none."""
    overlong_buffer: PositiveInt = 4096
    """Tokens before the limit over which the penalty grows; the paper's 4096 goes with a limit of 20480."""

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what is missing and for what was set without effect; each says what to do."""
        found = super().problems()
        if self.overlong_limit is None and self._is_chosen("overlong_buffer"):
            found.append(("overlong_buffer", "no effect without overlong_limit; leave it out, or set the limit"))
        if self.overlong_limit is not None and self.overlong_buffer > self.overlong_limit:
            found.append(("overlong_buffer", f"{self.overlong_buffer} is more than overlong_limit; set at most that"))
        return found


class DAPO(GRPO[DAPOConfig]):
    """The z-score within the group, of returns after the overlong penalty."""

    Config = DAPOConfig

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the z-score within the group."""
        returns, group = returns_and_groups(batch)
        returns = returns + self.penalty(sum_by(batch.action_mask.sum(1).double(), batch.trajectory))
        std = group_std(returns, group, ddof=self.config.std_ddof)
        return spread(centered(returns, group, singleton=self.config.singleton) / (std + self.config.std_eps), batch)

    def penalty(self, num_tokens: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
        """Gives the soft overlong penalty of episodes of so many action tokens, from -1 to 0 (Eq. 13)."""
        limit, buffer = self.config.overlong_limit, self.config.overlong_buffer
        if limit is None:
            return torch.zeros_like(num_tokens)
        return ((limit - buffer - num_tokens) / buffer).clamp(-1.0, 0.0)
