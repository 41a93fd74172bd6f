"""Models that are prompted: which one, over what, and how it thinks, as the command line names it."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrl.cli.parser import whole
from agentrl.errors import AgentRLError, NotFound

if TYPE_CHECKING:
    from agentrl.agents.chat_agent import ChatAgent
    from agentrl.agents.conversation import Model
    from agentrl.agents.reflexion import Reflexion
    from agentrl.assembly import Weights
    from agentrl.config import RunConfig
    from agentrl.config.endpoint import EndpointConfig
    from agentrl.rollout import Collector, EngineAgent

PROMPTED = ("model", "endpoint")
"""Policies that are language models."""
AGENTS = ("direct", "react", "reflexion")
TRIALS, MEMORY = 3, 3
"""Trials of a task and reflections that are remembered, by default; the paper remembers 1 to 3."""


def add_prompted(parser: argparse.ArgumentParser) -> None:
    """Adds what endpoints and agents need."""
    parser.add_argument("--url", metavar="URL", help="of --policy endpoint, e.g. http://localhost:8000/v1")
    parser.add_argument("--model", metavar="NAME", help="of --policy endpoint: the server's name of the model")
    text = "how the model is prompted: direct, react thinks before it acts, reflexion learns from failures; by default "
    text += "react where the prompt asks for steps, else direct"
    parser.add_argument("--agent", choices=AGENTS, help=text)
    parser.add_argument("--examples", type=Path, metavar="FILE", help="text with examples for react and reflexion")
    text = f"of --agent reflexion: how often a task is tried; {TRIALS} by default"
    parser.add_argument("--trials", type=whole(1), metavar="N", help=text)
    text = f"of --agent reflexion: how many of the last reflections are remembered; {MEMORY} by default"
    parser.add_argument("--memory", type=whole(1), metavar="K", help=text)


def endpoint_config(config: "RunConfig", arguments: argparse.Namespace) -> "EndpointConfig":
    """Gives the section endpoint of a configuration with the options over it.

    Raises:
        AgentRLError: there is no URL or no model.
    """
    from agentrl.config.endpoint import EndpointConfig

    known = config.endpoint.model_dump() if config.endpoint else {}
    settings: dict[str, Any] = known | {
        key: value for key in ("url", "model") if (value := getattr(arguments, key)) is not None
    }
    if missing := [f"--{key}" for key in ("url", "model") if not settings.get(key)]:
        raise AgentRLError(f"--policy endpoint: no {' and no '.join(missing)}; give it, or set the section endpoint")
    return EndpointConfig(**settings)


def endpoint_model(config: "RunConfig", arguments: argparse.Namespace) -> "Model":
    """Gives the model behind a URL; its key is read here and kept in memory alone."""
    from agentrl.agents.chat_client import ChatClient
    from agentrl.agents.endpoint import ChatParams, EndpointModel

    settings, engine = endpoint_config(config, arguments), config.engine
    key = os.environ.get(settings.key_env, "").strip() or None
    client = ChatClient(settings.url, key, settings.timeout_s, settings.max_tries)
    params = ChatParams(
        settings.model,
        temperature=engine.temperature if arguments.temperature is None else arguments.temperature,
        max_tokens=engine.max_tokens,
        top_p=arguments.top_p or settings.top_p,
        stop=settings.stop,
        limit_key=settings.limit_key,
    )
    return EndpointModel(client, params, concurrency=settings.concurrency)


def engine_model(agent: "EngineAgent", weights: "Weights") -> "Model":
    """Gives the model of a configuration or a run, on its engine."""
    from agentrl.agents.conversation import EngineModel

    return EngineModel(agent.engine, weights.chat, agent.params, agent.context_tokens)


def chat_agent(config: "RunConfig", arguments: argparse.Namespace, model: "Model") -> "ChatAgent":
    """Gives a player that talks to the model in the configuration's prompt."""
    from agentrl import assembly
    from agentrl.agents.chat_agent import ChatAgent

    prompt = assembly.prompt(config)
    if arguments.examples:
        prompt = replace(prompt, system="\n\n".join(filter(None, (prompt.system, _read(arguments.examples)))))
    return ChatAgent(model, prompt)


def reflexion(config: "RunConfig", arguments: argparse.Namespace, collector: "Collector") -> "Reflexion":
    """Gives what plays trials with a memory, in the words of the file reflexion.md beside the prompt."""
    from agentrl.agents.reflexion import Reflexion, ReflexionPrompt

    prompt = ReflexionPrompt.load(_reflexion_file(config))
    return Reflexion(collector, prompt, trials=arguments.trials or TRIALS, memory=arguments.memory or MEMORY)


def agent_name(config: "RunConfig", arguments: argparse.Namespace) -> str:
    """Gives how the model is prompted: as --agent says, else react where the prompt asks for steps, else direct."""
    from agentrl import assembly

    if arguments.agent or arguments.policy not in PROMPTED:
        return arguments.agent or "direct"
    return "react" if assembly.prompt(config).answer == "steps" else "direct"


def prompted_config(config: "RunConfig", arguments: argparse.Namespace) -> "RunConfig":
    """Gives the configuration with the prompt that the model reads: of --agent react or reflexion, one of steps.

    Raises:
        AgentRLError: an option is given that would have no effect, or there is no such prompt.
    """
    from agentrl import assembly

    agent = agent_name(config, arguments)
    _check_options(agent, arguments)
    if arguments.policy not in PROMPTED:
        return config
    asks_for_steps = assembly.prompt(config).answer == "steps"
    if agent == "direct" and asks_for_steps:
        raise AgentRLError(f"--agent direct: the prompt {config.env.prompt} asks for steps; use react or reflexion")
    if agent == "direct" or asks_for_steps:
        return config
    changed = {"prompt": _beside(config, "react", agent), "window_turns": None}
    found = config.model_copy(update={"env": config.env.model_copy(update=changed)})
    if (prompt := assembly.prompt(found)).answer != "steps":
        raise AgentRLError(
            f"--agent {agent}: the prompt {prompt.name} does not say 'answer: steps'; see prompts/alfworld/react.md"
        )
    return found


def told_files(config: "RunConfig", arguments: argparse.Namespace) -> list[Path]:
    """Gives the files that the model is told beside its prompt: what Reflexion asks, and examples.

    Raises:
        NotFound: one cannot be read.
    """
    files = [_reflexion_file(config)] if arguments.agent == "reflexion" else []
    if arguments.examples:
        _read(arguments.examples)
        files.append(arguments.examples)
    return files


def prompted_name(config: "RunConfig", arguments: argparse.Namespace) -> str:
    """Gives how a model is prompted, as tables call it, after a comma: ", reflexion 3 trials"; nothing for direct."""
    agent = agent_name(config, arguments)
    if agent == "direct":
        return ""
    name = f", {agent}"
    if agent == "reflexion":
        name += f" {arguments.trials or TRIALS} trials memory {arguments.memory or MEMORY}"
    return f"{name}, {arguments.examples.name}" if arguments.examples else name


def _check_options(agent: str, arguments: argparse.Namespace) -> None:
    spoken, thinking = arguments.policy in PROMPTED, agent != "direct"
    if thinking and not spoken:
        raise AgentRLError(f"--agent {agent}: --policy {arguments.policy} is not prompted; use model or endpoint")
    wanted = {
        "url": (arguments.policy == "endpoint", "--policy endpoint"),
        "model": (arguments.policy == "endpoint", "--policy endpoint"),
        "examples": (thinking, "--agent react or reflexion"),
        "trials": (agent == "reflexion", "--agent reflexion"),
        "memory": (agent == "reflexion", "--agent reflexion"),
        "temperature": (spoken, "--policy model or endpoint"),
        "top_p": (spoken, "--policy model or endpoint"),
        "checkpoint": (arguments.policy == "model", "--policy model"),
        "noise": (arguments.policy == "expert", "--policy expert"),
    }
    for option, (means_something, needed) in wanted.items():
        if getattr(arguments, option) is not None and not means_something:
            given = option.replace("_", "-")
            raise AgentRLError(f"--{given}: no effect without {needed}; leave it out, or add that")


def _reflexion_file(config: "RunConfig") -> Path:
    from agentrl import resources

    return resources.prompt_path(_beside(config, "reflexion", "reflexion"))


def _beside(config: "RunConfig", name: str, agent: str) -> str:
    """Gives the prompt of that name in the folder of the configuration's prompt."""
    from agentrl import resources

    prompt = config.env.prompt
    if prompt is None:
        example = "--set env.prompt=alfworld/react"
        raise NotFound(f"--agent {agent}: env.prompt is not set; name one with a {name}.md beside it, e.g. {example}")
    path = resources.prompt_path(prompt).with_name(f"{name}.md")
    if not path.is_file():
        raise NotFound(f"--agent {agent}: no prompt {path}; write one as prompts/alfworld/{name}.md is written")
    return Path(prompt).with_name(f"{name}{Path(prompt).suffix}").as_posix()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"--examples {path}: cannot be read: {error}") from error
