"""AdamW and its learning rate, which is a pure function of the step: a resumed run needs no scheduler state."""

import math

import torch

from agentrl.config.schema import TrainingConfig


def adamw(module: torch.nn.Module, *, weight_decay: float) -> torch.optim.AdamW:
    """Gives AdamW (betas 0.9, 0.95) over the trainable parameters; vectors (norms, biases) are not decayed."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0, betas=(0.9, 0.95))


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
    """Makes the next optimizer step use `rate`."""
    for group in optimizer.param_groups:
        group["lr"] = rate
