"""Measure speed on fixed workloads: environments, rollouts, updates, engines, the loss; alone and against peers.

The numbers compare machines, and one version with the next; take them while nothing else runs.
"""

import argparse
from typing import Any

from agentrl.cli import comparisons
from agentrl.cli.envs import env_ids
from agentrl.cli.parser import add_json, add_options, read_options, real, whole
from agentrl.cli.terminal import as_json, facts, say, table
from agentrl.errors import NotFound, did_you_mean

EXAMPLE = "agentrl bench env ALFWorld --seconds 5"
ACTIONS = ("env", "rollout", "update", "machine", *comparisons.MEASURES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(ACTIONS))
    env = actions.add_parser("env", help="steps a second of an environment", example=EXAMPLE)
    env.add_argument("id", metavar="NAME", help="e.g. ALFWorld, or a whole id")
    env.add_argument("--seconds", type=real(0.001), default=3.0, metavar="S", help="of each part; 3 by default")
    add_options(env)
    rollout = actions.add_parser("rollout", help="tokens a second of playing", example="agentrl bench rollout --json")
    update = actions.add_parser("update", help="tokens a second of learning", example="agentrl bench update --json")
    for one in (rollout, update):
        one.add_argument("--repeats", type=whole(1), default=3, metavar="N", help="tells the median of N; 3 by default")
    machine = actions.add_parser(
        "machine",
        help="a step of a random model of Qwen2.5's shape: tokens a second, share of the peak",
        example="agentrl bench machine --shape 0.5b",
    )
    sizes = "size; tiny by default, the others want a GPU"
    machine.add_argument("--shape", choices=("tiny", "0.5b", "1.5b"), default="tiny", help=sizes)
    peak = "the device's; known for common NVIDIA ones"
    machine.add_argument("--peak", type=real(0.001), metavar="TFLOPS", help=peak)
    for one in (env, rollout, update, machine, *comparisons.add_parsers(actions)):
        add_json(one)


def run(arguments: argparse.Namespace) -> int:
    """Measures."""
    if arguments.action in comparisons.MEASURES:
        _tell(arguments, *comparisons.MEASURES[arguments.action](arguments))
        return 0
    found = _measure(arguments)
    if arguments.json:
        as_json({"bench": arguments.action, **found})
    else:
        say(f"bench {arguments.action} {getattr(arguments, 'id', '')}", style="bold cyan")
        facts([(name, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}") for name, value in found.items()])
    return 0


def _tell(arguments: argparse.Namespace, rows: list[dict[str, Any]], missing: str) -> None:
    """Shows rows, and what was missing for more of them."""
    if arguments.json:
        as_json({"bench": arguments.action, "rows": rows})
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    written = [[row.get(name, "") for name in names] for row in rows]
    told = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row] for row in written]
    table([tuple(names), *map(tuple, told)])
    if missing:
        say(missing)


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
