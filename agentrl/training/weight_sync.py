"""New weights for the engine, and a canary that dies when they have not arrived."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from agentrl.config.engine import EngineConfig
from agentrl.engines._base import RolloutEngine
from agentrl.errors import AgentRLError
from agentrl.lora import has_adapters
from agentrl.policy import Policy

TOLERANCES = {"float32": 1e-3, "bfloat16": 0.3}
"""Mean differences in nats by the coarser type of engine and trainer. Measured with right weights: 1e-5 and 0.06."""
NUM_PROBES, PROBE_TOKENS = 4, 48
MISSED = 0.01
"""Share of the trainer's movement that the engine may miss. vLLM's stale head, the subtlest loss seen, is above it."""
ROUNDING = 8
"""Mean difference, in units of a type's precision, that is rounding; 1e-6 and 0.06 by those measured."""
ABOVE_ROUNDING = 10
"""Times the rounding that it must miss before that share is looked at; right weights miss the rounding itself."""
MOVED = 1e-4
"""A log-probability of the trainer that has moved by this, in nats, must have moved in the engine too."""


@dataclass
class WeightSync:
    """Hands weights over and compares how probable engine and trainer find a few fixed tokens, before any is sampled.

    Wrong weights are quiet: log-probabilities stay plausible, and the run just learns badly. A difference says that a
    tensor was dropped, mixed up or kept. Small updates differ less than the tolerance, so it is also watched that the
    engine moves as the trainer does: all of the way, since the first sync, and at all, since the last. The tokens are
    drawn at random once, and cost one small forward pass on either side.
    """

    engine: RolloutEngine
    policy: Policy
    tolerance: float
    """Largest mean difference, in nats."""
    probes: Int[Tensor, "probes tokens"]
    rounding: float
    """Mean difference that is taken for rounding, in nats, if the first sync shows no larger one."""
    _first: list[Float[Tensor, "probes tokens"]] = field(default_factory=list)
    _before: list[Float[Tensor, "probes tokens"]] = field(default_factory=list)

    @classmethod
    def of(cls, engine: RolloutEngine, policy: Policy, settings: EngineConfig) -> "WeightSync":
        """Gives the sync of a run."""
        embedding: Any = policy.model.get_input_embeddings()
        vocabulary = embedding.weight.shape[0]
        length = min(PROBE_TOKENS, settings.context_tokens - 1)
        drawn = np.random.default_rng(0).integers(vocabulary, size=(NUM_PROBES, length))
        own = str(policy.model.dtype).removeprefix("torch.")
        coarser = max(own, settings.dtype or own, key=lambda name: TOLERANCES[name])
        tolerance = settings.canary_tolerance or TOLERANCES[coarser]
        # Adapters begin at 0, so the first sync does not show how merging them rounds.
        exact = getattr(torch, coarser) if has_adapters(policy.model) else torch.float32
        return cls(engine, policy, tolerance, torch.from_numpy(drawn), ROUNDING * torch.finfo(exact).eps)

    def __call__(self, version: int) -> dict[str, float]:
        """Makes the engine sample with the policy's weights and gives the canary's metrics.

        Raises:
            AgentRLError: it does not.
        """
        self.engine.load_weights(self.policy.weights(), version=version)
        engine = torch.tensor([self.engine.score(probe) for probe in self.probes.tolist()])
        trainer = self._trainer()
        difference = (engine - trainer).abs()
        moved = (trainer - self._before[1]).abs().max().item() if self._before else 0.0
        if moved > MOVED and torch.equal(engine, self._before[0]):
            problem = (
                f"the update moved the trainer's log-probabilities by {moved:.2g} nats and the engine's not at all"
            )
            raise _Stop(version, problem, "it kept its old weights")
        if not difference.mean() <= self.tolerance:  # nan too
            problem = f"log-probabilities of engine and trainer differ by {difference.mean():.2g} nats"
            raise _Stop(
                version, problem, f"engine.canary_tolerance is {self.tolerance:g}, which may be raised for precision"
            )
        self._first = self._first or [engine, trainer]
        if (missed := self._missed(engine, trainer)) > MISSED:
            problem = f"the engine has missed {missed:.1%} of what updates moved the trainer's log-probabilities by"
            raise _Stop(version, problem, "it keeps a part of its old weights")
        self._before = [engine, trainer]
        return {
            "sync/canary_mean": difference.mean().item(),
            "sync/canary_max": difference.max().item(),
            "sync/canary_moved": moved,
        }

    def _missed(self, engine: Float[Tensor, "probes tokens"], trainer: Float[Tensor, "probes tokens"]) -> float:
        """Gives the share of the trainer's movement since the first sync that the engine has not made.

        0 while that is not far above the rounding seen at the first sync, which would be taken for it.
        """
        rounding = (self._first[0] - self._first[1]).abs().mean().clamp(min=self.rounding)
        movement = trainer - self._first[1]
        missed = (movement - (engine - self._first[0])).abs().mean()
        return (missed / movement.abs().mean()).item() if missed > ABOVE_ROUNDING * rounding else 0.0

    @torch.no_grad()
    def _trainer(self) -> Float[Tensor, "probes tokens"]:
        """Gives the trainer's log-probability, at temperature 1, of each token after the first."""
        probes = self.probes.to(self.policy.device)
        logprobs = torch.log_softmax(
            self.policy.model(input_ids=probes, use_cache=False).logits[:, :-1].float(), dim=-1
        )
        return logprobs.gather(-1, probes[:, 1:, None])[..., 0].cpu()


class _Stop(AgentRLError):
    def __init__(self, version: int, problem: str, detail: str) -> None:
        do = "set engine.name: hf, and report it"
        super().__init__(f"engine, after sync of version {version}: {problem} ({detail}); {do}")
