"""Low-rank adapters: a frozen model with a few trained weights beside its own (LoRA, arXiv:2106.09685), by PEFT.

With adapters, a layer computes W x + alpha/rank B A x; B starts at 0, so the model without them is the one that
training began with.
"""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from agentrl.config.schema import LoRAConfig
from agentrl.errors import ConfigError, MissingExtra

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
FILE_PREFIX = "base_model.model."
"""What PEFT's files put before each name."""


def add_adapters(model: PreTrainedModel, config: LoRAConfig, *, seed: int) -> None:
    """Freezes the model and puts adapters, which are trained, beside its layers.

    Raises:
        MissingExtra: PEFT is not installed.
        ConfigError: the model has no layer that is named.
    """
    LoraConfig, inject = _peft("model.lora")
    settings = LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        target_modules=list(config.targets) or "all-linear",
        base_model_name_or_path=model.name_or_path,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            inject(settings, model)
        except ValueError as error:
            layers = {
                name.rpartition(".")[2] for name, one in model.named_modules() if isinstance(one, torch.nn.Linear)
            }
            raise ConfigError(
                f"model.lora.targets: {error}; the model's layers are {', '.join(sorted(layers))}"
            ) from error


def base_of(folder: str | Path) -> str | None:
    """Gives the model that a folder's adapters belong to; None: the folder has no adapters."""
    file = Path(folder) / CONFIG_FILE
    return json.loads(file.read_text())["base_model_name_or_path"] if file.is_file() else None


def save_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Writes the adapters, their settings and the name of their model, as PEFT does."""
    folder.mkdir(parents=True, exist_ok=True)
    model.peft_config["default"].save_pretrained(folder)
    save_file({name: value.detach().cpu() for name, value in adapter_weights(model).items()}, folder / WEIGHTS_FILE)


def load_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Puts the adapters of a folder beside the layers of their model.

    Raises:
        MissingExtra: PEFT is not installed.
    """
    LoraConfig, inject = _peft(f"{folder}: a model with adapters")
    inject(LoraConfig.from_pretrained(folder), model)
    weights = load_file(folder / WEIGHTS_FILE)
    with torch.no_grad():
        for name, value in adapter_weights(model).items():
            value.copy_(weights[name])


def has_adapters(model: torch.nn.Module) -> bool:
    """Whether the model has adapters."""
    return any(".lora_A." in name for name, _ in model.named_parameters())


@contextmanager
def without_adapters(model: torch.nn.Module) -> Iterator[None]:
    """Makes the model compute what it would without its adapters."""
    layers = _adapted(model).values()
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


@torch.no_grad()
def merged_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Gives the weights that a model without adapters needs to compute the same, by the names they have in it."""
    layers = _adapted(model)
    for name, value in model.named_parameters():
        if ".lora_" in name:
            continue
        owner, _, kind = name.partition(".base_layer.")
        merged = value + layers[owner].get_delta_weight("default") if kind == "weight" else value
        yield f"{owner}.{kind}" if kind else name, merged


def merged_copy(model: PreTrainedModel) -> PreTrainedModel:
    """Gives a model without adapters that computes the same."""
    plain = copy.deepcopy(model)
    for name, layer in _adapted(plain).items():
        plain.set_submodule(name, layer.base_layer)
    own = dict(plain.named_parameters())
    with torch.no_grad():
        for name, value in merged_weights(model):
            own[name].copy_(value)
    return plain


def adapter_weights(model: PreTrainedModel) -> dict[str, torch.nn.Parameter]:
    """Gives the adapters' weights by the names they have in PEFT's files."""
    named = model.named_parameters()
    return {FILE_PREFIX + name.replace(".default.", "."): value for name, value in named if ".lora_" in name}


def _adapted(model: torch.nn.Module) -> dict[str, Any]:
    """Gives the layers that have an adapter."""
    from peft.tuners.lora import LoraLayer

    return {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}


def _peft(feature: str) -> tuple[Any, Any]:
    """Gives PEFT's class of settings and what puts adapters into a model."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise MissingExtra(feature, "lora") from error
    return LoraConfig, inject_adapter_in_model
