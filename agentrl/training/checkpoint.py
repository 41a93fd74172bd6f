"""Checkpoints: a Hugging Face model folder with the optimizer's state and the step beside it.

Of a model with adapters it holds the adapters and the name of the model that they belong to.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

from agentrl.algorithms._base import Algorithm
from agentrl.chat import ChatFormat
from agentrl.errors import DataError
from agentrl.lora import WEIGHTS_FILE, adapter_weights, has_adapters, save_adapters
from agentrl.policy import Critic, Policy


@dataclass(frozen=True)
class Progress:
    """How far a run has come. Task order and sampling are functions of seed and step, so this is all a run needs."""

    step: int
    """Steps completed."""
    version: int
    """Weight versions made so far."""


def checkpoint_folder(run_dir: Path, step: int) -> Path:
    """Gives the folder of the checkpoint after `step` completed steps."""
    return run_dir / "checkpoints" / f"step_{step:06d}"


def latest_checkpoint(run_dir: Path) -> Path:
    """Gives the newest checkpoint of a run.

    Raises:
        DataError: the run has none.
    """
    folders = sorted((run_dir / "checkpoints").glob("step_*"))
    if not folders:
        raise DataError(f"{run_dir}: no checkpoint to go on from; start again without --resume")
    return folders[-1]


@dataclass
class Learner:
    """All that learns in a run, and so all that a checkpoint keeps."""

    policy: Policy
    optimizer: torch.optim.Optimizer
    algorithm: Algorithm | None = None
    """It may remember something from step to step."""
    critic: Critic | None = None


def save_checkpoint(folder: Path, learner: Learner, chat: ChatFormat, progress: Progress) -> None:
    """Writes a checkpoint; a folder that exists is complete."""
    unfinished = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    if has_adapters(learner.policy.model):
        save_adapters(learner.policy.model, unfinished)
    else:
        learner.policy.model.save_pretrained(unfinished)
    chat.tokenizer.save_pretrained(unfinished)
    torch.save(learner.optimizer.state_dict(), unfinished / "optimizer.pt")
    if learner.critic is not None:
        torch.save(learner.critic.state_dict(), unfinished / "critic.pt")
    if learner.algorithm is not None and (memory := learner.algorithm.credit_source.state()):
        (unfinished / "algorithm.json").write_text(json.dumps(memory))
    (unfinished / "state.json").write_text(json.dumps(asdict(progress)))
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def load_checkpoint(folder: Path, learner: Learner) -> Progress:
    """Puts a checkpoint's weights, optimizer state and memory in place, bit for bit, and gives its progress."""
    file, own = "model.safetensors", dict(learner.policy.model.named_parameters())
    if has_adapters(learner.policy.model):
        file, own = WEIGHTS_FILE, adapter_weights(learner.policy.model)
    weights = load_file(folder / file)
    if missing := sorted(set(own) - set(weights)):
        raise DataError(f"{folder}: the checkpoint lacks {', '.join(missing[:3])}; it belongs to another model")
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(weights[name])
    learner.optimizer.load_state_dict(torch.load(folder / "optimizer.pt", weights_only=True))
    if learner.critic is not None:
        learner.critic.load_state_dict(torch.load(folder / "critic.pt", weights_only=True))
    if learner.algorithm is not None and (folder / "algorithm.json").is_file():
        learner.algorithm.credit_source.restore(json.loads((folder / "algorithm.json").read_text()))
    return Progress(**json.loads((folder / "state.json").read_text()))
