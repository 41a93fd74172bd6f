"""A model without a configuration: what one would say comes from the environment, the model and the profile."""

import re
from pathlib import Path
from typing import Any

from agentrl.cli.target import Target
from agentrl.errors import ConfigError

_CONTEXT_TOKENS = 8192
_NO_TRAINING = {"name": "c_rf"}
"""A configuration names an algorithm; this one asks for nothing and is never run."""


def bare_target(model: str, env_id: str, overrides: list[str]) -> Target:
    """Gives a shipped model, a folder or a hub id as if a configuration had named it.

    It is evaluated on the environment's first split of each role; a prompt and a turn may have as many tokens as the
    model has positions, 8192 at most.

    Raises:
        AgentRLError: there is no such model or environment, or an override is wrong.
    """
    from agentrl import assembly
    from agentrl.config.load import config_of

    name = Path(re.sub(r"[^\w-]+", "-", Path(model).name))
    tree: dict[str, Any] = {"env": {"id": env_id}, "model": {"path": model}, "algorithm": _NO_TRAINING}
    config = config_of(tree, overrides, path=name, origin=f"--env {env_id}").config
    splits = assembly.one_env(config).splits
    sides = {"eval_in": "in_distribution", "eval_out": "out_of_distribution"}
    tree["tasks"] = {key: next((name for name in splits if splits[name] == role), None) for key, role in sides.items()}
    context = min(_CONTEXT_TOKENS, _positions(assembly.model_source(config)))
    tree["engine"] = {"context_tokens": context, "max_tokens": min(512, context // 2)}
    return Target(config_of(tree, overrides, path=name, origin=f"--env {env_id}"))


def _positions(source: str | Path) -> int:
    from transformers import AutoConfig

    from agentrl.lora import base_of

    try:
        config = AutoConfig.from_pretrained(base_of(source) or source)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{source}: not a model that can be loaded: {error}") from error
    return getattr(config, "max_position_embeddings", None) or _CONTEXT_TOKENS
