"""The conditions of an evaluation, spelled out: two results may be compared when these are equal."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from agentrl import assembly, resources
from agentrl.config import RunConfig
from agentrl.errors import ConfigError
from agentrl.lora import CONFIG_FILE, base_of
from agentrl.tasks import TaskSet

PLACES = frozenset({"data"})
"""Options of environments that say where files are, which is a machine's affair; the manifest's hash says what they
are."""


def conditions(
    config: RunConfig[Any],
    tasks: TaskSet,
    *,
    samples: int,
    sampling: Mapping[str, float] | None,
    told: Sequence[Path] = (),
) -> dict[str, Any]:
    """Gives all that decides the episodes, but for who plays and the seed.

    Args:
        config: of the environment, the prompt and the limits on tokens.
        tasks: what is played.
        samples: episodes of each task.
        sampling: `temperature` and `top_p`; None for players that are no language models and read no prompt.
        told: files that the model is told beside its prompt, such as examples.
    """
    env = config.env
    spec = assembly.env_factory(config)().spec
    spoken = _spoken(config, sampling or {}, told)
    return {
        "env_id": env.id,
        "options": {key: value for key, value in env.options.items() if key not in PLACES},
        "max_turns": spec.max_episode_steps if spec else None,
        "split": tasks.split,
        "num_tasks": len(tasks),
        "manifest_sha256": tasks.sha256,
        "samples": samples,
        "profile": None,
        **(spoken if sampling else dict.fromkeys(spoken)),
    }


def _spoken(config: RunConfig[Any], sampling: Mapping[str, float], told: Sequence[Path]) -> dict[str, Any]:
    """Gives the conditions of language models alone."""
    named, prompt = config.env.prompt, assembly.prompt(config)
    names = [*([prompt_name(named)] if named else []), *(file.name for file in told)]
    files = [*([resources.prompt_path(named)] if named else []), *told]
    return {
        "prompt": " + ".join(names) or None,
        "prompt_sha256": hashlib.sha256(b"".join(map(Path.read_bytes, files))).hexdigest() if files else None,
        "history": f"{prompt.window_turns} turns" if prompt.history == "window" else "all turns",
        "max_tokens": config.engine.max_tokens,
        "context_tokens": config.engine.context_tokens,
        "temperature": sampling.get("temperature"),
        "top_p": sampling.get("top_p"),
    }


def prompt_name(prompt: str) -> str:
    """Gives the name of a shipped prompt; of a file, its name without this machine's folders."""
    return Path(prompt).name if prompt.endswith(".md") else prompt


def weights_id(source: str | Path) -> str:
    """Gives what tells models apart: the hash of a folder's weights and tokenizer, or the hub's id and commit.

    Of adapters it names their model too.

    Raises:
        ConfigError: there are none.
    """
    folder = Path(source)
    if any(folder.glob("*.safetensors")):
        digest = hashlib.sha256()
        for pattern in ("config.json", CONFIG_FILE, "*.safetensors", "tokenizer*.json", "chat_template*"):
            for file in sorted(folder.glob(pattern)):
                with file.open("rb") as opened:
                    digest.update(f"{file.name} {hashlib.file_digest(opened, 'sha256').hexdigest()}\n".encode())
        base = base_of(folder)
        return f"sha256:{digest.hexdigest()}" + (f" on {weights_id(base)}" if base else "")
    if folder.is_dir():
        raise ConfigError(f"model.path: no *.safetensors in {source}")
    try:
        commit = getattr(AutoConfig.from_pretrained(source), "_commit_hash", None)
    except OSError as error:
        raise ConfigError(f"model.path: cannot load {str(source)!r}: {error}") from error
    return f"{source}@{commit}"
