"""Measure speed on fixed workloads: an environment's steps, rollouts, updates, engines, the loss against a peer's.

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
    actions = parser.add_subparsers(dest="action", required=True, metavar="env|rollout|update|updates|engines|loss")
    env = actions.add_parser("env", help="steps a second of an environment", example=EXAMPLE)
    env.add_argument("id", metavar="NAME", help="e.g. ALFWorld, or a whole id")
    env.add_argument("--seconds", type=real(0.001), default=3.0, metavar="S", help="of each part; 3 by default")
    add_options(env)
    rollout = actions.add_parser("rollout", help="tokens a second of playing", example="agentrl bench rollout --json")
    update = actions.add_parser("update", help="tokens a second of learning", example="agentrl bench update --json")
    updates = actions.add_parser(
        "updates", help="chunks, packing and playing ahead against plain ways", example="agentrl bench updates --json"
    )
    loss = actions.add_parser(
        "loss", help="advantages, loss and gradient against verl's, where it is installed", example="agentrl bench loss"
    )
    engines = actions.add_parser(
        "engines", help="vLLM against Hugging Face, where vLLM is installed", example="agentrl bench engines --json"
    )
    engines.add_argument(
        "--model", default="tiny-alfworld", metavar="PATH", help="a shipped model, a folder or a hub id"
    )
    engines.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="float32 by default")
    repeats = {
        rollout: ("median", 3),
        update: ("median", 3),
        updates: ("least", 2),
        engines: ("best", 3),
        loss: ("least", 10),
    }
    for one, (told, default) in repeats.items():
        text = f"tells the {told} of N; {default} by default"
        one.add_argument("--repeats", type=whole(1), default=default, metavar="N", help=text)
    for one in (env, *repeats):
        add_json(one)


def run(arguments: argparse.Namespace) -> int:
    """Measures."""
    if arguments.action in ("loss", "updates"):
        return _comparison(arguments)
    if arguments.action == "engines":
        return _engines(arguments)
    found = _measure(arguments)
    if arguments.json:
        as_json({"bench": arguments.action, **found})
    else:
        say(f"bench {arguments.action} {getattr(arguments, 'id', '')}", style="bold cyan")
        facts([(name, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}") for name, value in found.items()])
    return 0


def _comparison(arguments: argparse.Namespace) -> int:
    """Shows rows of which each compares ours with another way."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler, which measures memory, talks a lot
    if arguments.action == "loss":
        from agentrl.bench.losses import measure_losses as measure
    else:
        from agentrl.bench.updates import measure_updates as measure
    rows = measure(repeats=arguments.repeats)
    if arguments.json:
        as_json({"bench": arguments.action, "rows": rows})
        return 0
    names = list(dict.fromkeys(name for row in rows for name in row))
    written = [[row.get(name, "") for name in names] for row in rows]
    told = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row] for row in written]
    table([tuple(names), *map(tuple, told)])
    if arguments.action == "loss" and "verl_s" not in rows[0]:
        say("verl is not installed, so there is nothing to compare with: pip install verl")
    return 0


def _engines(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from agentrl import assembly
    from agentrl.bench.engines import measure_engines
    from agentrl.engines import _vllm_install
    from agentrl.policy import Policy, load_model

    policy = Policy(load_model(assembly.find_model(arguments.model), arguments.dtype))
    rows = [asdict(row) for row in measure_engines(policy, repeats=arguments.repeats)]
    if arguments.json:
        about = {"model": arguments.model, "dtype": arguments.dtype, "vllm": _vllm_install.version()}
        as_json({"bench": "engines", **about, "rows": rows})
        return 0
    written = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    table([tuple(rows[0]), *map(tuple, written)])
    if len(rows) == 1:
        say(_vllm_install.status())
    return 0


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.action == "env":
        from agentrl.bench.environments import measure_env

        return measure_env(_env_id(arguments.id), seconds=arguments.seconds, options=read_options(arguments.option))
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
