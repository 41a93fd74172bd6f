"""AdamW and its learning rate, which is a pure function of the step: a resumed run needs no scheduler state."""

import math
from typing import Any

import torch

from agentrl.config.schema import TrainingConfig


def adamw(
    module: torch.nn.Module, *, weight_decay: float, critic: torch.nn.Module | None = None, critic_lr_scale: float = 1.0
) -> torch.optim.AdamW:
    """Gives AdamW (betas 0.9, 0.95) over the trainable parameters; vectors (norms, biases) are not decayed.

    The critic's parameters learn at `critic_lr_scale` times the rate of the others.
    """
    groups = _groups(module, weight_decay, 1.0)
    if critic is not None:
        groups += _groups(critic, weight_decay, critic_lr_scale)
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0, betas=(0.9, 0.95))


def _groups(module: torch.nn.Module, weight_decay: float, lr_scale: float) -> list[dict[str, Any]]:
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay, "lr_scale": lr_scale},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0, "lr_scale": lr_scale},
    ]


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Gives the rate of step 0, 1, ...: a linear rise over `warmup_steps`, then the schedule down to the last step."""
    rise = min(1.0, (step + 1) / max(config.warmup_steps, 1))
    progress = max(0, step - config.warmup_steps) / max(config.steps - config.warmup_steps, 1)
    match config.schedule:
        case "constant":
            factor = 1.0
        case "linear":
            factor = 1 - progress
        case "cosine":
            factor = (1 + math.cos(math.pi * progress)) / 2
    return config.learning_rate * rise * factor


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Makes the next optimizer step use `rate`, times a parameter group's own scale."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("lr_scale", 1.0)
