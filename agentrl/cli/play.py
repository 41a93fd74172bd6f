"""Be the policy: read what it reads, act as it acts. A number picks an admissible action; quit ends.

Input may be piped: one action a line.
"""

import argparse
import re
import sys
from typing import Any

from agentrl.cli.parser import add_options, add_set, read_options, whole
from agentrl.cli.terminal import say
from agentrl.errors import AgentRLError

EXAMPLE = "agentrl play agentrl/ALFWorld-v0"
ENV_ID = re.compile(r".+-v\d+")
"""What tells an environment's id from a configuration's name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("env", metavar="ENV_OR_CONFIG", help="an environment's id, or a configuration's name or file")
    parser.add_argument("--task", metavar="ID", help="the task; by default the seed picks one to train on")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="of the episode; 0 by default")
    add_options(parser)
    add_set(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plays one episode."""
    env = _make(arguments)
    observation, info = env.reset(seed=arguments.seed, options={"task_id": arguments.task} if arguments.task else None)
    say(f"{arguments.env}  task {info.get('task_id', '(unnamed)')}  seed {arguments.seed}", style="bold")
    total, num_turns, terminated, truncated = 0.0, 0, False, False
    while not (terminated or truncated):
        actions = [action for action in info.get("admissible_actions", []) if action != "help"]
        _show(observation, actions)
        action = _ask(actions)
        if action is None:
            say(f"\nleft after {num_turns} turns · return {total:g}")
            return 0
        observation, reward, terminated, truncated, info = env.step(action)
        total, num_turns = total + float(reward), num_turns + 1
        say(
            f"reward {float(reward):g}{'   refused' if info.get('inadmissible') else ''}",
            style="green" if reward else "dim",
        )
    _show(observation, [])
    ending = "terminated" if terminated else "max_turns"
    result = "success" if info.get("success", total > 0) else "no success"
    say(f"\n{ending} after {num_turns} turns · return {total:g} · {result}", style="bold")
    env.close()
    return 0


def _make(arguments: argparse.Namespace) -> Any:
    from agentrl.env import make

    if ENV_ID.fullmatch(arguments.env):
        if arguments.set:
            raise AgentRLError(f"--set {arguments.set[0]}: {arguments.env} is no configuration; use --option key=value")
        return make(arguments.env, **read_options(arguments.option))
    from agentrl.config import load_config

    env = load_config(arguments.env, arguments.set).config.env
    return make(env.id, max_turns=env.max_turns, **env.options | read_options(arguments.option))


def _show(observation: str, actions: list[str]) -> None:
    say(f"\n{observation.strip()}", style="cyan")
    for number, action in enumerate(actions, start=1):
        say(f"  {number:>3}  {action}", style="dim")


def _ask(actions: list[str]) -> str | None:
    """Gives the next action, or None when there is none to come; whatever is typed that is no number is the action."""
    if sys.stdin.isatty():
        print("> ", end="", flush=True)
    line = sys.stdin.readline()
    typed = line.strip()
    if not line or typed == "quit":
        return None
    # Where the actions are numbers themselves, as digits are, a number is what it says.
    if typed not in actions and typed.isdigit() and 1 <= int(typed) <= len(actions):
        typed = actions[int(typed) - 1]
    say(f"> {typed}", style="bold")
    return typed
