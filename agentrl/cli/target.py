"""What verbs are about: a configuration or a run folder, and whoever plays in it."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrl.cli.parser import add_set, real, whole
from agentrl.cli.prompted import (
    PROMPTED,
    add_prompted,
    agent_name,
    chat_agent,
    endpoint_config,
    endpoint_model,
    engine_model,
    prompted_config,
    prompted_name,
    reflexion,
)
from agentrl.errors import NotFound

if TYPE_CHECKING:
    from agentrl.agents.reflexion import Reflexion
    from agentrl.config import Loaded
    from agentrl.rollout import Agent, Collector

POLICIES = ("model", "endpoint", "expert", "oracle", "random")


@dataclass(frozen=True)
class Target:
    """A configuration and, when a run folder was named, that folder and one of its checkpoints."""

    loaded: "Loaded"
    run: Path | None = None
    checkpoint: Path | None = None
    """Where the weights are; None means where the configuration says."""

    @property
    def name(self) -> str:
        """The configuration's own name, or the run folder's."""
        return self.run.resolve().name if self.run else self.loaded.path.stem

    @property
    def step(self) -> int:
        """The checkpoint's step; 0 for the weights that training starts from."""
        from agentrl.report.summary import step_of

        return max(step_of(self.checkpoint), 0) if self.checkpoint else 0


def add_target(parser: argparse.ArgumentParser) -> None:
    """Adds the target, who plays, and how."""
    parser.add_argument("target", metavar="CONFIG_OR_RUN", help="a configuration's name or file, or a run folder")
    text = "who plays; the model by default. expert sees what a policy sees, oracle knows the solution"
    parser.add_argument("--policy", choices=POLICIES, default="model", help=text)
    parser.add_argument("--checkpoint", metavar="STEP_OR_FOLDER", help="weights to load; the run's newest by default")
    parser.add_argument(
        "--temperature", type=real(0), metavar="T", help="of the model; 0 takes the most probable token"
    )
    parser.add_argument(
        "--top-p", type=real(0.01, 1), metavar="P", help="sample from the fewest tokens that are together this probable"
    )
    parser.add_argument("--noise", type=real(0, 1), metavar="X", help="share of the expert's actions that is random")
    parser.add_argument("--seed", type=whole(0), metavar="N", help="of the episodes; training.seed by default")
    add_prompted(parser)
    add_set(parser)


def find_target(name: str, overrides: list[str], checkpoint: str | None = None) -> Target:
    """Gives the configuration of that name or file, or the run in that folder.

    Raises:
        AgentRLError: there is none, or it is wrong.
    """
    from agentrl.config import load_config
    from agentrl.training.checkpoint import checkpoint_folder, latest_checkpoint

    run = Path(name)
    if not run.is_dir():
        loaded = load_config(name, overrides)
        return Target(loaded, checkpoint=_existing(Path(checkpoint)) if checkpoint else None)
    check_run(run)
    target = Target(load_config(str(run / "config.yaml"), overrides), run)
    if checkpoint is None:
        saved = any((run / "checkpoints").glob("step_*"))
        return replace(target, checkpoint=latest_checkpoint(run)) if saved else target
    folder = checkpoint_folder(run, int(checkpoint)) if checkpoint.isdigit() else Path(checkpoint)
    return replace(target, checkpoint=_existing(folder))


def load_checked(name: str, overrides: list[str]) -> "Loaded":
    """Gives a configuration whose environment, splits, prompt and model are there, before anything is made or loaded.

    Raises:
        AgentRLError: one of them is not.
    """
    from agentrl import assembly
    from agentrl.config import load_config

    loaded = load_config(name, overrides)
    config = loaded.config
    assembly.prompt(config)
    assembly.model_source(config)
    for split in filter(None, (config.tasks.train, config.tasks.eval_in, config.tasks.eval_out)):
        assembly.task_set(config, split)
    assembly.check_reward(config)
    return loaded


def check_run(path: Path) -> None:
    """Passes if the path is a run folder.

    Raises:
        NotFound: it is not.
    """
    if not (path / "config.yaml").is_file():
        raise NotFound(f"{path}: not a run folder, there is no config.yaml in it; 'runs/latest' is the newest run")


def prompted(target: Target, arguments: argparse.Namespace) -> Target:
    """Gives the target with the prompt that its player reads.

    Raises:
        AgentRLError: the options contradict each other, or there is no such prompt.
    """
    loaded = target.loaded
    return replace(target, loaded=replace(loaded, config=prompted_config(loaded.config, arguments)))


def find_agent(target: Target, arguments: argparse.Namespace) -> "Agent":
    """Gives whoever is to play a target that `prompted` gave.

    Raises:
        AgentRLError: the model cannot be loaded, or no server is named.
    """
    from agentrl import assembly
    from agentrl.evaluation.players import expert_player, oracle_player, random_player
    from agentrl.rollout import ActorAgent

    config = target.loaded.config
    if arguments.policy == "endpoint":
        return chat_agent(config, arguments, endpoint_model(config, arguments))
    if arguments.policy == "model":
        weights = assembly.Weights.load(config, target.checkpoint)
        agent = assembly.agent(config, weights, temperature=arguments.temperature, top_p=arguments.top_p or 1.0)
        is_direct = agent_name(config, arguments) == "direct"
        return agent if is_direct else chat_agent(config, arguments, engine_model(agent, weights))
    players: dict[str, Callable[[], Callable[[int], Any]]] = {
        "expert": lambda: expert_player(assembly.one_env(config), noise=arguments.noise or 0.0),
        "oracle": lambda: oracle_player(assembly.one_env(config)),
        "random": lambda: random_player,
    }
    return ActorAgent(players[arguments.policy]())


def find_collector(target: Target, arguments: argparse.Namespace) -> "Collector | Reflexion":
    """Gives what plays the episodes: once each, or in trials where the agent learns from its failures."""
    from agentrl import assembly

    collector = assembly.collector(target.loaded.config)
    return reflexion(target.loaded.config, arguments, collector) if arguments.agent == "reflexion" else collector


def policy_name(target: Target, arguments: argparse.Namespace) -> str:
    """Gives what a table calls whoever plays: "step 100", "expert, noise 0.1", "random", "qwen at endpoint, react"."""
    if arguments.policy not in PROMPTED:
        return f"expert, noise {arguments.noise:g}" if arguments.noise else arguments.policy
    config = target.loaded.config
    if arguments.policy == "endpoint":
        name = f"{endpoint_config(config, arguments).model} at endpoint"
    else:
        name = f"step {target.step}" if target.checkpoint else config.model.path
    temperature = "" if arguments.temperature is None else f", temperature {arguments.temperature:g}"
    return f"{name}{prompted_name(config, arguments)}{temperature}"


def _existing(folder: Path) -> Path:
    from agentrl import assembly

    if not assembly.holds_model(folder):
        beside = sorted(path.name for path in folder.parent.glob("step_*"))
        raise NotFound(f"--checkpoint: no model in {folder}; there are: {', '.join(beside) or 'none'}")
    return folder
