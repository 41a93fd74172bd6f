"""What an optimizer step needs to know as a whole, before it is cut into micro-batches.

Letters: B rows, T tokens. Everything here is made once from the counts of all rows of all ranks, so that the cut
changes nothing but memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.batch import Batch
from agentrl.loss import LossOutput, correct, policy_loss, token_weights


@dataclass(frozen=True)
class OptimizerStep:
    """All of one optimizer step."""

    batch: Batch
    advantages: Float[Tensor, "B T"]
    """Of each action token, after the off-policy correction."""
    keep: Bool[Tensor, "B T"]
    """The action tokens whose loss counts."""
    weights: Float[Tensor, "B T"]
    """Of each action token, before any filter."""
    slopes: Float[Tensor, "B T"] | None = None
    """d loss / d log pi of each token, where the loss couples tokens and so was computed for the whole step."""
    sums: Mapping[str, Tensor] = field(default_factory=dict)
    """What was summed over the whole step: of a loss that couples tokens, and of the correction."""
    value_targets: Float[Tensor, "B T"] | None = None
    """What the critic should say."""

    def select(self, rows: Int[Tensor, " b"]) -> "OptimizerStep":
        """Gives some rows; their weights stay those of the whole step."""
        batch = self.batch.select(rows)
        width = batch.input_ids.shape[1]
        own = {name: value[rows, :width] for name, value in self._tensors().items()}
        return replace(self, batch=batch, **own)

    def to(self, device: torch.device) -> "OptimizerStep":
        """Gives the step on a device."""
        return replace(self, batch=self.batch.to(device), **{k: v.to(device) for k, v in self._tensors().items()})

    def silenced(self) -> "OptimizerStep":
        """Gives the step with no action tokens: no gradient, and no counts."""
        return replace(self, batch=replace(self.batch, action_mask=torch.zeros_like(self.batch.action_mask)))

    def _tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}


def plan(
    algorithm: Algorithm,
    batch: Batch,
    advantages: Float[Tensor, "B T"],
    current_logprobs: Float[Tensor, "B T"] | None,
    *,
    value_targets: Float[Tensor, "B T"] | None = None,
) -> OptimizerStep:
    """Gives the optimizer step of an annotated batch.

    `advantages` are the algorithm's `credit` for these rows; `current_logprobs` the policy's now, which is what tokens
    are ranked by and what a coupled loss is computed from: None where the algorithm does not ask for them.
    """
    config = algorithm.config
    current = batch.old_logprobs if current_logprobs is None else current_logprobs
    # Filters that look at log-probabilities have asked for the current ones.
    keep = algorithm.keep(batch, advantages, batch.rollout_logprobs if current is None else current)
    weights = token_weights(
        config.aggregate,
        batch.action_mask,
        batch.trajectory,
        positive=(advantages > 0).any(1),
        group=batch.group,
        horizon=config.horizon,
    )
    sums: dict[str, Tensor] = {}
    if config.correction.is_on:
        assert batch.old_logprobs is not None, "annotate the batch first"
        factor, stays = correct(
            config.correction, batch.old_logprobs, batch.rollout_logprobs, batch.action_mask, batch.trajectory
        )
        advantages, keep = advantages * factor, keep & stays
        at_bound = (factor == config.correction.low) | (factor == config.correction.high)
        sums["corrected"] = (at_bound & stays).sum()
        sums["vetoed"] = (batch.action_mask & ~stays).sum()
    step = OptimizerStep(batch, advantages, keep, weights, sums=sums, value_targets=value_targets)
    if not config.is_coupled:
        return step
    assert current is not None, "annotate the batch first"
    return _coupled(algorithm, step, current)


def step_loss(algorithm: Algorithm, step: OptimizerStep, logprobs: Float[Tensor, "B T"]) -> LossOutput:
    """Gives the loss of some rows of a step; where tokens are coupled, a sum with the whole step's gradient."""
    mask = step.batch.action_mask
    if step.slopes is None:
        return _loss(algorithm, step, logprobs)
    slopes = torch.where(mask, step.slopes, 0.0).to(logprobs.dtype)
    return LossOutput((slopes * torch.where(mask, logprobs, 0.0)).sum(), {})


def _loss(algorithm: Algorithm, step: OptimizerStep, logprobs: Float[Tensor, "B T"]) -> LossOutput:
    batch = step.batch
    return policy_loss(
        algorithm.config,
        logprobs=logprobs,
        old_logprobs=logprobs.detach() if batch.old_logprobs is None else batch.old_logprobs,
        advantages=step.advantages,
        action_mask=batch.action_mask,
        keep=step.keep,
        weights=step.weights,
        ref_logprobs=batch.ref_logprobs,
        trajectory=torch.unique(batch.trajectory, return_inverse=True)[1],
        group=batch.group,
    )


def _coupled(algorithm: Algorithm, step: OptimizerStep, current_logprobs: Float[Tensor, "B T"]) -> OptimizerStep:
    """Gives the step with the loss of all its rows at the current policy: its gradient by token, and its sums."""
    logprobs = current_logprobs.detach().clone().requires_grad_()
    with torch.enable_grad():
        output = _loss(algorithm, step, logprobs)
        (slopes,) = torch.autograd.grad(output.loss, logprobs)
    return replace(step, slopes=slopes, sums={**step.sums, **output.sums})
