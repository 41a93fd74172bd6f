"""Measure speed on fixed workloads: an environment's steps, rollouts, updates, the loss against a peer's.

The numbers compare machines, and one version with the next; take them while nothing else runs.
"""

import argparse
import os
from typing import Any

from agentrl.cli.envs import env_ids
from agentrl.cli.parser import add_json, add_options, read_options, real, whole
from agentrl.cli.terminal import as_json, facts, say, table
from agentrl.errors import NotFound, did_you_mean

EXAMPLE = "agentrl bench env ALFWorld --seconds 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="env|rollout|update|loss|episodes|growth|reward|machine"
    )
    env = actions.add_parser("env", help="steps a second of an environment", example=EXAMPLE)
    env.add_argument("id", metavar="NAME", help="e.g. ALFWorld, or a whole id")
    env.add_argument("--seconds", type=real(0.001), default=3.0, metavar="S", help="of each part; 3 by default")
    add_options(env)
    rollout = actions.add_parser("rollout", help="tokens a second of playing", example="agentrl bench rollout --json")
    update = actions.add_parser("update", help="tokens a second of learning", example="agentrl bench update --json")
    loss = actions.add_parser(
        "loss", help="advantages, loss and gradient against verl's, where it is installed", example="agentrl bench loss"
    )
    for one in (rollout, update):
        one.add_argument("--repeats", type=whole(1), default=3, metavar="N", help="tells the median of N; 3 by default")
    loss.add_argument("--repeats", type=whole(1), default=10, metavar="N", help="tells the least of N; 10 by default")
    for one in (env, rollout, update, loss, *_add_others(actions)):
        add_json(one)


def _add_others(actions: Any) -> list[argparse.ArgumentParser]:
    """Adds what measures whole rollouts and steps, and gives it."""
    episodes = actions.add_parser(
        "episodes",
        help="episodes a second of ALFWorld, against a loop with barriers and, where it is installed, TRL's",
        example="agentrl bench episodes --model runs/smollm2 --turns 10 --tokens 16",
    )
    episodes.add_argument(
        "--model",
        metavar="FOLDER",
        help="a model that is told the rules; by default the tiny one that has learned them",
    )
    episodes.add_argument("--episodes", type=whole(2), default=64, metavar="N", help="games at once; 64 by default")
    episodes.add_argument("--turns", type=whole(3), default=16, metavar="N", help="games have 2 to N; 16 by default")
    episodes.add_argument("--tokens", type=whole(1), default=10, metavar="N", help="most of a turn; 10 by default")
    episodes.add_argument("--repeats", type=whole(1), default=3, metavar="N", help="tells the best of N; 3 by default")
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
    reward.add_argument(
        "--target", type=real(0.0, 1.0), default=0.25, metavar="R", help="mean of a step; 0.25 by default"
    )
    machine = actions.add_parser(
        "machine",
        help="a step of a random model of Qwen2.5's shape: tokens a second, share of the peak",
        example="agentrl bench machine --shape 0.5b",
    )
    machine.add_argument(
        "--shape", choices=("tiny", "0.5b", "1.5b"), default="tiny", help="size; tiny by default, the others want a GPU"
    )
    machine.add_argument(
        "--peak", type=real(0.001), metavar="TFLOPS", help="the device's; known for common NVIDIA ones"
    )
    return [episodes, growth, reward, machine]


def run(arguments: argparse.Namespace) -> int:
    """Measures."""
    tables = {"loss": _losses, "episodes": _episodes, "growth": _growth, "reward": _reward}
    if arguments.action in tables:
        return tables[arguments.action](arguments)
    found = _measure(arguments)
    if arguments.json:
        as_json({"bench": arguments.action, **found})
    else:
        say(f"bench {arguments.action} {getattr(arguments, 'id', '')}", style="bold cyan")
        facts([(name, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}") for name, value in found.items()])
    return 0


def _losses(arguments: argparse.Namespace) -> int:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler, which measures memory, talks a lot
    from agentrl.bench.losses import measure_losses

    rows = measure_losses(repeats=arguments.repeats)
    missing = (
        "" if "verl_s" in rows[0] else "verl is not installed, so there is nothing to compare with: pip install verl"
    )
    return _show(arguments, rows, missing)


def _episodes(arguments: argparse.Namespace) -> int:
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from agentrl.bench.rollouts import TRL_INSTALL, measure_episodes, workload

    overrides = [f"engine.max_tokens={arguments.tokens}"]
    overrides += [f"model.path={arguments.model}"] if arguments.model else []
    config = "alfworld/tiny_smollm2" if arguments.model else "quickstart"
    work = workload(config, overrides, num_episodes=arguments.episodes, most_turns=arguments.turns)
    rows = measure_episodes(work, repeats=arguments.repeats)
    found = {row["loop"] for row in rows}
    return _show(arguments, rows, "" if "trl" in found else f"TRL is not installed, so it was left out: {TRL_INSTALL}")


def _reward(arguments: argparse.Namespace) -> int:
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from agentrl.bench.reward import measure_reward
    from agentrl.bench.rollouts import TRL_INSTALL

    rows = measure_reward(arguments.target)
    return _show(arguments, rows, "" if len(rows) > 1 else f"TRL is not installed, so it was left out: {TRL_INSTALL}")


def _growth(arguments: argparse.Namespace) -> int:
    from agentrl.bench.growth import measure_growth

    return _show(arguments, measure_growth(arguments.episodes))


def _show(arguments: argparse.Namespace, rows: list[dict[str, Any]], missing: str = "") -> int:
    if arguments.json:
        as_json({"bench": arguments.action, "rows": rows})
        return 0
    written = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    table([tuple(rows[0]), *map(tuple, written)])
    if missing:
        say(missing)
    return 0


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.action == "env":
        from agentrl.bench.environments import measure_env

        return measure_env(_env_id(arguments.id), seconds=arguments.seconds, options=read_options(arguments.option))
    if arguments.action == "machine":
        from agentrl.bench.machine import measure_machine

        return measure_machine(arguments.shape, peak_tflops=arguments.peak)
    from agentrl.bench import workloads

    measure = {"rollout": workloads.measure_rollout, "update": workloads.measure_update}[arguments.action]
    return measure(repeats=arguments.repeats)


def _env_id(name: str) -> str:
    """Gives the id of an environment that is called `name`, an id itself or the name in one."""
    if ":" in name:
        return name
    ids, _ = env_ids()
    named = {id.partition("/")[2].rpartition("-v")[0]: id for id in ids} | {id: id for id in ids}
    if name not in named:
        raise NotFound(f"bench env: no environment {name!r}.{did_you_mean(name, named)} There are: {', '.join(ids)}")
    return named[name]
