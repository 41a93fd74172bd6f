"""Supervised warm-up: the policy clones demonstrations, with the batch and the loss of RL.

Letters: B rows, T tokens.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from agentrl.batch import Batch, make_batch
from agentrl.config.schema import SFTConfig
from agentrl.errors import DataError
from agentrl.loss import LossConfig, policy_loss
from agentrl.policy import Policy
from agentrl.training.optimizer import set_learning_rate
from agentrl.trajectory import Trajectory

CLONING = LossConfig(ratio="none", clip_low=None, clip_high=None)
"""Maximum likelihood as a choice in the loss core: no ratio, advantage 1."""


def choose_demonstrations(played: Sequence[Trajectory], *, keep_lost: bool) -> list[Trajectory]:
    """Gives the demonstrations to clone.

    Raises:
        DataError: none is left.
    """
    chosen = [one for one in played if one.turns and one.ending.trainable and (keep_lost or one.success)]
    if not chosen:
        raise DataError(
            f"sft: none of {len(played)} demonstrations was won; lower sft.noise or set sft.keep_lost: true"
        )
    return chosen


def clone(
    policy: Policy,
    demonstrations: Sequence[Trajectory],
    optimizer: torch.optim.Optimizer,
    *,
    config: SFTConfig,
    seed: int,
    after_step: Callable[[int, dict[str, float]], None],
) -> None:
    """Trains for `config.steps` optimizer steps; calls `after_step(steps done, metrics)` after each."""
    batches = _batches(demonstrations, config.batch_tokens, seed)
    for step in range(config.steps):
        set_learning_rate(optimizer, _rate(config, step))
        metrics = _step(policy, next(batches).to(policy.device), optimizer, config)
        after_step(step + 1, metrics)


def _step(policy: Policy, batch: Batch, optimizer: torch.optim.Optimizer, config: SFTConfig) -> dict[str, float]:
    trained, weights = _sft_weights(batch, config.observation_weight)
    logprobs, _ = policy(batch, trained)
    ones = torch.ones_like(logprobs)
    output = policy_loss(
        CLONING,
        logprobs=logprobs,
        old_logprobs=logprobs.detach(),
        advantages=ones,
        action_mask=trained,
        keep=trained,
        weights=weights,
    )
    optimizer.zero_grad(set_to_none=True)
    output.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    of_actions = -logprobs.detach()[batch.action_mask].mean()
    return {
        "sft/loss": float(output.loss.detach()),
        "sft/action_nll": float(of_actions),
        "policy/grad_norm": float(norm),
    }


def _sft_weights(batch: Batch, observation_weight: float) -> tuple[Bool[Tensor, "B T"], Float[Tensor, "B T"]]:
    """Gives the cloned tokens and their weights, which sum to 1: actions 1, what the environment said less."""
    predicted = batch.attention_mask.clone()
    predicted[:, 0] = False  # nothing predicts a row's first token
    trained = predicted if observation_weight > 0 else batch.action_mask
    weights = torch.where(batch.action_mask, 1.0, observation_weight) * trained
    return trained, weights / weights.sum()


def _batches(demonstrations: Sequence[Trajectory], batch_tokens: int, seed: int) -> Iterator[Batch]:
    """Gives batches of demonstrations of like length, each of at most `batch_tokens` with padding, without end."""
    lengths = [[len(row.ids) for row in one.segments()] for one in demonstrations]
    ordered = sorted(zip(lengths, demonstrations, strict=True), key=lambda item: max(item[0]))
    rng = np.random.default_rng((seed, 3))
    while True:
        first = int(rng.integers(len(ordered)))
        chosen: list[Trajectory] = []
        num_rows = 0
        for rows, one in ordered[first:]:
            num_rows += len(rows)
            if chosen and num_rows * max(rows) > batch_tokens:
                break
            chosen.append(one)
        yield make_batch(chosen)


def _rate(config: SFTConfig, step: int) -> float:
    """Gives the learning rate: a linear rise, then half a cosine down to 0."""
    rise = min(1.0, (step + 1) / max(config.warmup_steps, 1))
    progress = max(0, step - config.warmup_steps) / max(config.steps - config.warmup_steps, 1)
    return config.learning_rate * rise * (1 + float(np.cos(np.pi * progress))) / 2
