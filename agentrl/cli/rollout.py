"""Play episodes and keep every turn of them, one trajectory a line; nothing is learned.

`agentrl view FILE` shows them. A file name that ends in .gz is compressed.
"""

import argparse
import gzip
import time
from pathlib import Path

from agentrl.cli.parser import add_json, whole
from agentrl.cli.target import add_target, find_agent, find_collector, find_target, policy_name, prompted
from agentrl.cli.terminal import as_json, facts, interval, say, share

EXAMPLE = "agentrl rollout runs/latest -n 20 --out rollouts.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    add_target(parser)
    parser.add_argument("--split", metavar="NAME", help="split to play; tasks.train by default")
    parser.add_argument(
        "-n", type=whole(1), default=16, metavar="N", dest="num", help="how many episodes; 16 by default"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write, e.g. rollouts.jsonl")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plays."""
    from agentrl import assembly
    from agentrl.run_folder import write_trajectories
    from agentrl.tally import Tally
    from agentrl.tasks import TaskSampler

    target = prompted(find_target(arguments.target, arguments.set, arguments.checkpoint), arguments)
    config = target.loaded.config
    tasks = assembly.task_set(config, arguments.split or config.tasks.train)
    seed = config.training.seed if arguments.seed is None else arguments.seed
    agent, collector = find_agent(target, arguments), find_collector(target, arguments)
    start = time.perf_counter()
    played = collector.play(agent, TaskSampler(tasks, tasks_per_step=arguments.num, group_size=1, seed=seed).batch(0))
    seconds = time.perf_counter() - start
    collector.close()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    compressed = arguments.out.suffix == ".gz"
    with gzip.open(arguments.out, "wt") if compressed else arguments.out.open("w", encoding="utf-8") as file:
        write_trajectories(file, played)
    tally = Tally(played)
    policy = policy_name(target, arguments)
    if arguments.json:
        as_json({"file": arguments.out, "policy": policy, "split": tasks.split, "seconds": seconds, **tally.metrics()})
        return 0
    endings = ", ".join(f"{count} {ending}" for ending, count in tally.endings.items() if count)
    facts(
        [
            (
                "played",
                f"{tally.num_episodes} episodes of {config.env.id} {tasks.split} by {policy} in {seconds:.1f} s",
            ),
            ("success", f"{share(tally.success_rate)} {interval(tally.ci95)}"),
            ("return", f"{tally.mean_return:.2f} on average, in {tally.mean_turns:.1f} turns"),
            ("endings", endings),
            (
                "invalid",
                f"{share(tally.inadmissible_frac)} inadmissible, {share(tally.format_invalid_frac)} unreadable",
            ),
        ]
    )
    say(f"\nWritten to {arguments.out}; read them with: agentrl view {arguments.out}")
    return 0
