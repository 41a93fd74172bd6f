"""The benches that compare: ours with a peer's or with the plain way, in rows of one run.

Each measure gives its rows and, where a peer is not installed, how to install it.
"""

import argparse
from collections.abc import Callable
from typing import Any

from agentrl.cli.parser import real, whole

Rows = list[dict[str, Any]]


def add_parsers(actions: Any) -> list[argparse.ArgumentParser]:
    """Adds the actions and gives their parsers."""
    updates = actions.add_parser(
        "updates", help="log-probabilities and gradients against plain passes", example="agentrl bench updates"
    )
    loss = actions.add_parser(
        "loss", help="advantages, loss and gradient against verl's, where it is installed", example="agentrl bench loss"
    )
    engines = actions.add_parser(
        "engines", help="vLLM against Hugging Face, where vLLM is installed", example="agentrl bench engines --json"
    )
    path = "a shipped model, a folder or a hub id; tiny-alfworld by default"
    engines.add_argument("--model", default="tiny-alfworld", metavar="PATH", help=path)
    engines.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="float32 by default")
    episodes = actions.add_parser(
        "episodes",
        help="episodes a second of ALFWorld, against a loop with barriers and, where it is installed, TRL's",
        example="agentrl bench episodes --model runs/smollm2 --turns 10 --tokens 16",
    )
    folder = "a model that is told the rules; by default the tiny one that has learned them"
    episodes.add_argument("--model", metavar="FOLDER", help=folder)
    episodes.add_argument("--episodes", type=whole(2), default=64, metavar="N", help="games at once; 64 by default")
    episodes.add_argument("--turns", type=whole(3), default=16, metavar="N", help="games have 2 to N; 16 by default")
    episodes.add_argument("--tokens", type=whole(1), default=10, metavar="N", help="most of a turn; 10 by default")
    for one, default in ((updates, 2), (loss, 10), (engines, 3), (episodes, 3)):
        text = f"tells the best of N; {default} by default"
        one.add_argument("--repeats", type=whole(1), default=default, metavar="N", help=text)
    growth = actions.add_parser(
        "growth",
        help="time and memory of a training step of 1, 2, 4 and 8 times as many episodes",
        example="agentrl bench growth",
    )
    growth.add_argument("--episodes", type=whole(2), default=32, metavar="N", help="of the smallest; 32 by default")
    reward = actions.add_parser(
        "reward",
        help="time until GRPO reaches a reward on Guess, against TRL's trainer, where it is installed",
        example="agentrl bench reward --target 0.25",
    )
    mean = "mean of a step; 0.25 by default"
    reward.add_argument("--target", type=real(0.0, 1.0), default=0.25, metavar="R", help=mean)
    reward.add_argument("--seeds", type=whole(1), default=3, metavar="N", help="sums N runs; 3 by default")
    return [updates, loss, engines, episodes, growth, reward]


def _updates(arguments: argparse.Namespace) -> tuple[Rows, str]:
    from agentrl.bench.updates import measure_updates

    return measure_updates(repeats=arguments.repeats), ""


def _losses(arguments: argparse.Namespace) -> tuple[Rows, str]:
    from agentrl.bench.losses import measure_losses

    rows = measure_losses(repeats=arguments.repeats)
    missing = "verl is not installed, so there is nothing to compare with: pip install verl"
    return rows, "" if "verl_s" in rows[0] else missing


def _engines(arguments: argparse.Namespace) -> tuple[Rows, str]:
    from dataclasses import asdict

    from agentrl import assembly
    from agentrl.bench.engines import measure_engines
    from agentrl.engines import _vllm_install
    from agentrl.policy import Policy, load_model

    policy = Policy(load_model(assembly.find_model(arguments.model), arguments.dtype))
    about = {"model": arguments.model, "dtype": arguments.dtype}
    rows = [{**about, **asdict(row)} for row in measure_engines(policy, repeats=arguments.repeats)]
    return rows, "" if len(rows) > 1 else _vllm_install.status()


def _episodes(arguments: argparse.Namespace) -> tuple[Rows, str]:
    from agentrl.bench.rollouts import TRL_INSTALL, measure_episodes, workload

    overrides = [f"engine.max_tokens={arguments.tokens}"]
    overrides += [f"model.path={arguments.model}"] if arguments.model else []
    config = "alfworld/tiny_smollm2" if arguments.model else "quickstart"
    work = workload(config, overrides, num_episodes=arguments.episodes, most_turns=arguments.turns)
    rows = measure_episodes(work, repeats=arguments.repeats)
    return rows, "" if "trl" in {row["loop"] for row in rows} else _without_trl(TRL_INSTALL)


def _reward(arguments: argparse.Namespace) -> tuple[Rows, str]:
    from agentrl.bench.reward import measure_reward
    from agentrl.bench.rollouts import TRL_INSTALL

    rows = measure_reward(arguments.target, seeds=arguments.seeds)
    return rows, "" if len(rows) > 1 else _without_trl(TRL_INSTALL)


def _growth(arguments: argparse.Namespace) -> tuple[Rows, str]:
    from agentrl.bench.growth import measure_growth

    return measure_growth(arguments.episodes), ""


def _without_trl(install: str) -> str:
    return f"TRL is not installed, so it was left out: {install}"


MEASURES: dict[str, Callable[[argparse.Namespace], tuple[Rows, str]]] = {
    "updates": _updates,
    "loss": _losses,
    "engines": _engines,
    "episodes": _episodes,
    "growth": _growth,
    "reward": _reward,
}
