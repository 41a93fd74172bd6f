"""The parts of a run, built from its configuration: environments, model, engine, agent."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import gymnasium
import torch

from agentrl import registry, resources
from agentrl.algorithms._base import Algorithm
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.config import RunConfig
from agentrl.config.schema import FiltersConfig
from agentrl.engines._base import SamplingParams
from agentrl.env import TextEnv, make, text_env
from agentrl.env_workers import EnvWorkers
from agentrl.errors import ConfigError, NotFound
from agentrl.lora import add_adapters, base_of, has_adapters
from agentrl.policy import Policy, load_model
from agentrl.prompts import Prompt
from agentrl.rewards._base import Source
from agentrl.rewards.env import env_rewards
from agentrl.rewards.function import RewardFunction
from agentrl.rewards.model import RewardModel
from agentrl.rewards.scorer import Scorer
from agentrl.rollout import Collector, Deadlines, EngineAgent, Speaker
from agentrl.tasks import TaskSet
from agentrl.trajectory import Trajectory


def env_factory(config: RunConfig) -> Callable[[], gymnasium.Env[str, str]]:
    """Gives what makes one more environment of the run."""
    # Not a lambda: worker processes get it too.
    return functools.partial(make, config.env.id, max_turns=config.env.max_turns, **config.env.options)


def collector(config: RunConfig) -> Collector:
    """Gives what plays the run's episodes."""
    rollout, make_env = config.rollout, env_factory(config)
    return Collector(
        EnvWorkers(make_env, rollout.env_workers).make if rollout.env_workers else make_env,
        env_id=config.env.id,
        concurrency=rollout.concurrency,
        deadlines=Deadlines(rollout.step_timeout_s, rollout.episode_timeout_s),
    )


def one_env(config: RunConfig) -> TextEnv:
    """Gives one environment of the run, for its task sets and its expert."""
    return text_env(env_factory(config)())


def task_set(config: RunConfig, split: str) -> TaskSet:
    """Gives the tasks of a split."""
    env = one_env(config)
    env.check_split(split)
    return env.task_set(split)


def prompt(config: RunConfig) -> Prompt:
    """Gives the run's prompt; without one, observations are shown as they are.

    Raises:
        ConfigError: its file is wrong, or `window_turns` is set for a prompt that keeps the whole conversation.
    """
    found = Prompt.load(resources.prompt_path(config.env.prompt)) if config.env.prompt else Prompt()
    if config.env.window_turns is None:
        return found
    if found.history != "window":
        what_to_do = "leave it out, or choose a prompt with a window, such as alfworld/step"
        raise ConfigError(f"env.window_turns: prompt {found.name!r} keeps the whole conversation; {what_to_do}")
    return replace(found, window_turns=config.env.window_turns)


def algorithm(config: RunConfig) -> Algorithm:
    """Gives the run's algorithm with its knobs."""
    return registry.load("algorithms", config.algorithm.name)(config.algorithm)


def scorer(config: RunConfig, *, device: torch.device) -> Callable[[list[Trajectory]], list[Trajectory]]:
    """Gives what pays the run's episodes; where only the environment does, as it does, `list`.

    Raises:
        ConfigError: the reward model or the function cannot be loaded.
    """
    reward = config.reward
    if reward.source == "env" and reward.scale == 1 and reward.clip is None and not reward.invalid_penalty:
        return list
    return Scorer(
        _reward_source(config, device),
        scale=reward.scale,
        clip=reward.clip,
        add=reward.add,
        invalid_penalty=reward.invalid_penalty,
    )


def check_reward(config: RunConfig) -> None:
    """Passes if the run's reward function can be imported, or its reward model may be there; loads no weights.

    Raises:
        ConfigError: it is not.
    """
    reward = config.reward
    if reward.source == "function":
        _reward_source(config, torch.device("cpu"))
    elif reward.source == "model" and reward.path and not Path(reward.path).is_dir() and reward.path.count("/") != 1:
        raise ConfigError(f"reward.path: no folder {reward.path!r}; name one, or a hub id such as owner/name")


def filters(config: RunConfig) -> FiltersConfig:
    """Gives which episodes are not trained on.

    Raises:
        ConfigError: a filter asks for what the environment does not report.
    """
    if config.filters.void_turn and "void_turn" not in one_env(config).reports:
        raise ConfigError(f"filters.void_turn: {config.env.id} does not report void turns; leave it out")
    return config.filters


def _reward_source(config: RunConfig, device: torch.device) -> Source:
    reward = config.reward
    if reward.source == "env":
        return env_rewards
    assert reward.path is not None, "RunConfig.check asks for it"
    if reward.source == "function":
        return RewardFunction.load(reward.path, per_turn=reward.per_turn)
    batch_tokens = config.training.micro_batch_tokens
    return RewardModel.load(reward.path, device=device, per_turn=reward.per_turn, batch_tokens=batch_tokens)


def model_source(config: RunConfig) -> str | Path:
    """Gives where the weights are: a folder, a shipped model or a hub id."""
    return find_model(config.model.path)


def find_model(path: str) -> str | Path:
    """Gives the folder of a shipped model; a folder or a hub id as it is.

    Raises:
        NotFound: it is none of them.
    """
    if Path(path).is_dir():
        return path
    try:
        return resources.model_path(path)
    except NotFound:
        if "/" in path:
            return path
        raise


def holds_model(folder: Path) -> bool:
    """Whether a folder holds a model, or the adapters of one."""
    return (folder / "config.json").is_file() or base_of(folder) is not None


@dataclass(frozen=True)
class Weights:
    """A policy and how it speaks."""

    policy: Policy
    chat: ChatFormat

    @classmethod
    def load(
        cls, config: RunConfig, source: str | Path | None = None, *, device: torch.device | None = None
    ) -> "Weights":
        """Reads a model and its tokenizer from `source`, or from where the configuration says.

        Without a `device`, the weights go to the first GPU when there is one.

        Raises:
            ConfigError: there is no such model, or it has no chat template.
        """
        source = source or model_source(config)
        device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            tokenizer, model = load_tokenizer(source), load_model(source, config.model.dtype)
        except OSError as error:
            raise ConfigError(f"model.path: cannot load {str(source)!r}: {error}") from error
        training = config.training
        if config.model.lora and not has_adapters(model):  # a checkpoint comes with its own
            add_adapters(model, config.model.lora, seed=training.seed)
        policy = Policy(
            model,
            temperature=config.engine.temperature,
            packed=training.packing,
            chunk_tokens=training.logprob_chunk_tokens,
            autocast=training.autocast,
        )
        if training.gradient_checkpointing:
            policy.checkpoint_layers()
        if training.compile:
            policy.compile_trunk()
        return cls(policy.to(device), ChatFormat(tokenizer))


def speaker(config: RunConfig, weights: Weights) -> Speaker:
    """Gives how the model is spoken to in this run."""
    return Speaker(weights.chat, prompt(config))


def agent(config: RunConfig, weights: Weights, *, temperature: float | None = None, top_p: float = 1.0) -> EngineAgent:
    """Gives the policy as a player, on an engine with weights of its own."""
    engine = registry.load("engines", config.engine.name).start(weights.policy.whole_model(), config.engine)
    params = SamplingParams(
        temperature=config.engine.temperature if temperature is None else temperature,
        max_tokens=config.engine.max_tokens,
        stop_ids=weights.chat.stop_ids,
        top_p=top_p,
    )
    return EngineAgent(engine, speaker(config, weights), params, config.engine.context_tokens)
