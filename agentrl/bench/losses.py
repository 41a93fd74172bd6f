"""Our advantages, loss and gradient against verl's on the same tensors: time and peak memory.

Letters: B rows, T tokens. verl is looked for, not installed: `pip install verl` beside agentrl is enough, and its
functions are called as they are.
"""

import importlib.util
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.ppo import PPO, PPOConfig
from agentrl.algorithms.reinforce_pp import ReinforcePP, ReinforcePPConfig
from agentrl.batch import Batch
from agentrl.bench.measure import least_s, peak_mib
from agentrl.training.plan import plan, step_loss

SHAPES = ((32, 4096), (256, 512))
GROUP_SIZE = 8
TURN_TOKENS = 64
"""Length of a turn; every second one is the environment's."""
ALGORITHMS: dict[str, Algorithm] = {
    "ppo": PPO(PPOConfig(std_ddof=1, std_eps_on="variance")),
    "grpo": GRPO(GRPOConfig(aggregate="token_mean", kl_estimator="none")),
    "reinforce_pp": ReinforcePP(
        ReinforcePPConfig(kl_estimator="none", kl_coef=0.0, kl_in="loss", std_ddof=1, std_eps_on="variance")
    ),
}
"""With verl's choices, so that both compute the same but for the dual clip, which it always has."""


def measure_losses(*, repeats: int = 3) -> list[dict[str, Any]]:
    """Gives a row for each algorithm and shape: seconds and peak MiB of ours and, where verl is installed, of its.

    Seconds are the least of `repeats` calls in turn, after one that warms up; ratios are ours over verl's.
    """
    verl = _verl() if importlib.util.find_spec("verl") else None
    rows = []
    for name, algorithm in ALGORITHMS.items():
        for shape in SHAPES:
            batch = made_up_batch(*shape)
            calls: dict[str, Callable[[Tensor], Tensor]] = {"ours": lambda x, a=algorithm, b=batch: ours(a, b, x)}
            if verl is not None:
                calls["verl"] = lambda x, n=name, b=batch: verl_loss(verl, n, b, x)
            rows.append({"algorithm": name, "rows": shape[0], "tokens": shape[1], **_compared(calls, batch, repeats)})
    return rows


def made_up_batch(num_rows: int, num_tokens: int) -> Batch:
    """Gives conversations of equal turns, every second one masked, with a reward on the last action token."""
    generator = torch.Generator().manual_seed(0)
    shape = (num_rows, num_tokens)
    turn = (torch.arange(num_tokens) // TURN_TOKENS).expand(shape)
    mask = turn % 2 == 1
    old = -2 * torch.rand(shape, generator=generator)
    rewards = torch.zeros(shape)
    rewards[:, -1] = (torch.rand(num_rows, generator=generator) < 0.5).float()
    rows = torch.arange(num_rows)
    return Batch(
        input_ids=torch.zeros(shape, dtype=torch.int64),
        attention_mask=torch.ones(shape, dtype=torch.bool),
        action_mask=mask,
        rollout_logprobs=old,
        rewards=rewards,
        turn=torch.where(mask, turn // 2, -1),
        trajectory=rows,
        group=rows // GROUP_SIZE,
        episode_return=rewards.sum(1),
        policy_version=torch.where(mask, 0, -1),
        task=rows // GROUP_SIZE,
        anchor=torch.where(mask, turn, -1),
        truncated=torch.zeros(num_rows, dtype=torch.bool),
        old_logprobs=old,
        values=torch.rand(shape, generator=generator),
    )


def ours(algorithm: Algorithm, batch: Batch, logprobs: Tensor) -> Tensor:
    """Gives our loss of the whole step."""
    return step_loss(algorithm, plan(algorithm, batch, algorithm.credit(batch), None), logprobs).loss


def verl_loss(verl: SimpleNamespace, name: str, batch: Batch, logprobs: Tensor) -> Tensor:
    """Gives verl's loss of the same."""
    mask = batch.action_mask.float()
    match name:
        case "ppo":
            advantages, _ = verl.gae(batch.rewards, batch.values, mask, 1.0, 0.95)
        case "grpo":
            advantages, _ = verl.grpo(batch.rewards, mask, np.asarray(batch.group))
        case _:
            advantages, _ = verl.reinforce_pp(batch.rewards, mask, config=SimpleNamespace(gamma=1.0))
    loss, _ = verl.policy_loss(batch.old_logprobs, logprobs, advantages, mask, "token-mean", _VerlConfig())
    return loss


class _VerlConfig(SimpleNamespace):
    """What verl's loss reads of its actor's configuration."""

    def __init__(self) -> None:
        super().__init__(clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.2, global_batch_info={})

    def get(self, key: str, default: Any = None) -> Any:
        """Gives a value that may be missing."""
        return getattr(self, key, default)


def _verl() -> SimpleNamespace:
    from verl.trainer.ppo import core_algos  # pyright: ignore[reportMissingImports]

    return SimpleNamespace(
        gae=core_algos.compute_gae_advantage_return,
        grpo=core_algos.compute_grpo_outcome_advantage,
        reinforce_pp=core_algos.compute_reinforce_plus_plus_outcome_advantage,
        policy_loss=core_algos.compute_policy_loss_vanilla,
    )


def _compared(calls: dict[str, Callable[[Tensor], Tensor]], batch: Batch, repeats: int) -> dict[str, float]:
    """Measures the calls."""
    assert batch.old_logprobs is not None
    start = batch.old_logprobs + 0.1 * torch.sin(torch.arange(batch.input_ids.shape[1]))

    def run(call: Callable[[Tensor], Tensor]) -> Tensor:
        logprobs = start.clone().requires_grad_()
        call(logprobs).backward()
        assert logprobs.grad is not None
        return logprobs.grad

    gradients = [run(call) for call in calls.values()]
    for gradient in gradients[1:]:
        worst = float((gradient - gradients[0]).abs().max() / gradients[0].abs().max())
        assert worst < 1e-3, f"the two do not compute the same: gradients differ by {worst:.2g}"
    ran = {name: lambda call=call: run(call) for name, call in calls.items()}
    found = {f"{name}_s": seconds for name, seconds in least_s(ran, repeats).items()}
    found |= {f"{name}_mib": peak_mib(one) for name, one in ran.items()}
    if "verl" in calls:
        found["time_ratio"] = found["ours_s"] / found["verl_s"]
        found["memory_ratio"] = found["ours_mib"] / found["verl_mib"]
    return found
