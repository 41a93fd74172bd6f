"""Evaluation as a paper does it: step cap, prompt, history, sampling and metrics of each environment, with the source.

A profile is a small YAML file, shipped under configs/profiles or the user's own. The prompts are in our words, since a
protocol is its numbers; a profile may name a prompt file of the user's. Whatever of a profile is overridden is stamped
on the result.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from agentrl import resources
from agentrl.config import Loaded
from agentrl.config.load import read_section
from agentrl.config.schema import PromptName, Section
from agentrl.errors import NotFound, did_you_mean
from agentrl.evaluation.protocol import PLACES, prompt_name

METRICS = ("success_rate", "score", "return", "score_per_token")
"""What a profile may name as the paper's numbers, beside avg@k and pass@k of so many samples."""


class EnvProtocol(Section):
    """How one environment is evaluated."""

    max_turns: PositiveInt
    """Turns after which an episode is truncated."""
    prompt: PromptName
    """Shipped prompt, or a path that ends in .md."""
    window_turns: PositiveInt | None = None
    """Past turns that the prompt shows; None where it keeps the whole conversation."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Of the environment: which data, what reward."""
    eval_in: str | None = None
    """Split that is distributed as training is; None: not evaluated."""
    eval_out: str | None = None
    """Split that differs from training; None: not evaluated."""
    temperature: NonNegativeFloat
    """0 takes the most probable token."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Share of the probability that is sampled from."""
    max_tokens: PositiveInt
    """Tokens a turn may have."""
    context_tokens: PositiveInt
    """Tokens a prompt and its turn may have together."""
    samples: PositiveInt = 1
    """Episodes of each task."""
    metrics: tuple[str, ...] = ("success_rate",)
    """The numbers that the paper reports, as a result's `metrics` call them."""

    @model_validator(mode="after")
    def _check(self) -> "EnvProtocol":
        known = [*METRICS, *(f"pass@{k}" for k in range(1, self.samples + 1)), f"avg@{self.samples}"]
        for metric in self.metrics:
            if metric not in known:
                raise ValueError(f"metrics: no {metric!r}.{did_you_mean(metric, known)} There are {', '.join(METRICS)}")
        if self.max_tokens >= self.context_tokens:
            raise ValueError(f"max_tokens: {self.max_tokens} leaves no room for a prompt in {self.context_tokens}")
        return self


class Profile(Section):
    """A published protocol."""

    source: str = Field(min_length=10)
    """Paper, section or script that the numbers are from."""
    differs: str = ""
    """Where we knowingly do otherwise, and why."""
    environments: dict[str, EnvProtocol] = Field(min_length=1)
    """Environment id -> its protocol."""


@dataclass(frozen=True)
class Named:
    """A profile under its name."""

    name: str
    profile: Profile

    @classmethod
    def load(cls, name: str) -> "Named":
        """Reads a shipped profile by name, or a file that ends in .yaml.

        Raises:
            NotFound: no such profile.
            ConfigError: the file is wrong; lists every problem with its place.
        """
        path = resources.profile_path(name)
        return cls(path.stem, read_section(Profile, path))

    @property
    def sha256(self) -> str:
        """Hash of the values; comments and order do not count."""
        return hashlib.sha256(json.dumps(self.profile.model_dump(), sort_keys=True).encode()).hexdigest()

    def protocol(self, env_id: str) -> EnvProtocol:
        """Gives how an environment is evaluated.

        Raises:
            NotFound: the profile does not say.
        """
        known = self.profile.environments
        if env_id not in known:
            hint = did_you_mean(env_id, known)
            raise NotFound(f"profile {self.name} says nothing about {env_id}.{hint} It has: {', '.join(known)}")
        return known[env_id]

    def applied(self, loaded: Loaded) -> Loaded:
        """Gives the configuration with the profile's environment, splits and limits; what --set says stays."""
        config = loaded.config
        wanted = self.protocol(config.env.id)
        asked = [key for key, origin in loaded.origins.items() if origin.startswith("--set")]
        kept = {
            key: value
            for key, value in config.env.options.items()
            if key in PLACES or any(f"{one}.".startswith(f"env.options.{key}.") for one in asked)
        }
        sections = {
            "env": {
                "max_turns": wanted.max_turns,
                "prompt": wanted.prompt,
                "window_turns": wanted.window_turns,
            },
            "tasks": {"eval_in": wanted.eval_in, "eval_out": wanted.eval_out},
            "engine": {"max_tokens": wanted.max_tokens, "context_tokens": wanted.context_tokens},
        }
        changed: dict[str, Any] = {}
        for section, values in sections.items():
            new = {key: value for key, value in values.items() if f"{section}.{key}" not in asked}
            if section == "env":
                new["options"] = {**wanted.options, **kept}
            changed[section] = getattr(config, section).model_copy(update=new)
        return replace(loaded, config=config.model_copy(update=changed))

    def stamp(self, conditions: Mapping[str, Any], *, num_tasks: int) -> dict[str, Any]:
        """Gives what a result says of its profile: name, hash, and which of the conditions are not the profile's.

        Args:
            conditions: of the evaluation, as `protocol.conditions` gives them.
            num_tasks: of the whole split.
        """
        wanted = self.protocol(conditions["env_id"])
        history = f"{wanted.window_turns} turns" if wanted.window_turns else "all turns"
        numbers = ("max_turns", "samples", "max_tokens", "context_tokens", "temperature", "top_p")
        published = {
            "num_tasks": num_tasks,
            **{key: getattr(wanted, key) for key in numbers},
            "options": {key: value for key, value in wanted.options.items() if key not in PLACES},
            "prompt": prompt_name(wanted.prompt),
            "history": history,
        }
        changed = [key for key, value in published.items() if conditions[key] not in (value, None)]
        if conditions["split"] not in (wanted.eval_in, wanted.eval_out):
            changed.append("split")
        return {"name": self.name, "sha256": self.sha256, "changed": sorted(changed)}
