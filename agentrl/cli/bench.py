"""Measure speed on fixed workloads: an environment's steps, rollouts, updates.

The numbers compare machines, and one version with the next; take them while nothing else runs.
"""

import argparse
from typing import Any

from agentrl.cli.envs import env_ids
from agentrl.cli.parser import add_json, add_options, read_options, real, whole
from agentrl.cli.terminal import as_json, facts, say
from agentrl.errors import NotFound, did_you_mean

EXAMPLE = "agentrl bench env ALFWorld --seconds 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="env|rollout|update")
    env = actions.add_parser("env", help="steps a second of an environment", example=EXAMPLE)
    env.add_argument("id", metavar="NAME", help="e.g. ALFWorld, or a whole id")
    env.add_argument("--seconds", type=real(0.001), default=3.0, metavar="S", help="of each part; 3 by default")
    add_options(env)
    rollout = actions.add_parser("rollout", help="tokens a second of playing", example="agentrl bench rollout --json")
    update = actions.add_parser("update", help="tokens a second of learning", example="agentrl bench update --json")
    for one in (rollout, update):
        one.add_argument("--repeats", type=whole(1), default=3, metavar="N", help="tells the median of N; 3 by default")
    for one in (env, rollout, update):
        add_json(one)


def run(arguments: argparse.Namespace) -> int:
    """Measures."""
    found = _measure(arguments)
    if arguments.json:
        as_json({"bench": arguments.action, **found})
    else:
        say(f"bench {arguments.action} {getattr(arguments, 'id', '')}", style="bold cyan")
        facts([(name, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}") for name, value in found.items()])
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
