"""PPO: proximal policy optimization with a critic (arXiv:1707.06347).

    A_t = GAE(gamma, lambda) over action tokens        critic: 1/2 max((V - target)^2, (clip(V) - target)^2)

The critic is a copy of the policy's trunk with a scalar head; its target is A_t + V_old. The successor of an action
token is the next action token, however much the environment says between them.
"""

from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, CriticSettings
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.algorithms._returns import generalized_advantages
from agentrl.batch import Batch

UpToOne = Annotated[float, Field(ge=0, le=1)]


class PPOConfig(NormalizedConfig):
    """Knobs of PPO."""

    name: str = "ppo"
    gamma: UpToOne = 1.0
    """Discount for each action token; 1, the default, is usual for outcome rewards."""
    gae_lambda: UpToOne = 0.95
    """How far advantages look beyond the critic: 0 to the next token, 1 to the end. 0.95 is the paper's."""
    normalize: bool = True
    """Normalize advantages over the whole batch."""
    value_clip: PositiveFloat | None = 0.2
    """How far a value counts from its old one; null does not clip."""
    critic_lr_scale: PositiveFloat = 10.0
    """Learning rate of the critic, a multiple of the policy's; 10 is usual (1e-5 beside 1e-6)."""

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what is missing and for what was set without effect; each says what to do."""
        found = super().problems()
        if not self.normalize:
            told = [knob for knob in ("normalize_over", "std_ddof", "std_eps", "std_eps_on") if self._is_chosen(knob)]
            found += [(knob, "no effect without normalize; leave it out, or set normalize") for knob in told]
        return found


class PPO(Algorithm[PPOConfig]):
    """Generalized advantages of a critic."""

    Config = PPOConfig
    needs = frozenset({"values"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives GAE, normalized over the batch where that is asked for."""
        raw = self._raw(batch)
        return normalized(raw, batch, self.config) if self.config.normalize else raw

    def targets(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the returns that GAE implies: advantage, before normalization, plus old value."""
        assert batch.values is not None, "annotate the batch first"
        return self._raw(batch) + torch.where(batch.action_mask, batch.values.double(), 0.0)

    @property
    def critic(self) -> CriticSettings:
        """How the critic is trained."""
        return CriticSettings(value_clip=self.config.value_clip, lr_scale=self.config.critic_lr_scale)

    def _raw(self, batch: Batch) -> Float[Tensor, "B T"]:
        return generalized_advantages(batch, gamma=self.config.gamma, gae_lambda=self.config.gae_lambda)
