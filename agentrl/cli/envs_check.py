"""Does an environment keep its contract? Everything that training relies on, tried out."""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from agentrl.cli.terminal import as_json, say, share
from agentrl.errors import AgentRLError, EnvError

if TYPE_CHECKING:
    from agentrl.env import TextEnv

ROLES = {"train", "in_distribution", "out_of_distribution"}
OVERLAP_TRIED = 10_000
MARKS = {"ok": "ok  ", "failed": "FAIL", "none": "-   "}


def check(id: str, options: dict[str, Any], num_episodes: int, *, as_data: bool) -> int:
    """Prints what was tried and what came of it; gives the exit code, 1 when something failed."""
    from agentrl.env import make, text_env

    limited = make(id, **options)
    trials = _trials(text_env(limited), limited, num_episodes)
    results = [_tried(name, trial, optional=optional) for name, optional, trial in trials]
    failed = any(result["outcome"] == "failed" for result in results)
    if as_data:
        as_json({"id": id, "passed": not failed, "checks": results})
    else:
        say(id, style="bold cyan")
        for one in results:
            style = {"ok": "green", "failed": "bold red"}.get(one["outcome"], "dim")
            say(f"  {MARKS[one['outcome']]}  {one['check']:<44}  {one['told']}", style=style)
    return int(failed)


def _trials(env: "TextEnv", limited: Any, num_episodes: int) -> Iterator[tuple[str, bool, Callable[[], str]]]:
    """Gives each check: name, whether EnvError means "has none", and a call that tells what it found or raises."""
    from agentrl.evaluation.players import expert_player, random_player

    yield "gymnasium's own check", False, lambda: _gymnasium(env)
    yield "splits have roles, tasks and a hash", False, lambda: _splits(env)
    yield "no task to train on is out of distribution", False, lambda: _overlap(env)
    yield "one seed, one task: the same texts twice", False, lambda: _deterministic(env, limited)
    yield "a random player", True, lambda: _play(env, limited, random_player, num_episodes)
    yield "the expert", True, lambda: _play(env, limited, expert_player(env), num_episodes)


def _tried(name: str, trial: Callable[[], str], *, optional: bool) -> dict[str, str]:
    try:
        return {"check": name, "outcome": "ok", "told": trial()}
    except Exception as error:  # the boundary to code that is not ours: whatever it raises is the finding
        none = optional and isinstance(error, EnvError)
        outcome, kind = ("none", "") if none else ("failed", f"{type(error).__name__}: ")
        return {"check": name, "outcome": outcome, "told": f"{kind}{error}"}


def _gymnasium(env: "TextEnv") -> str:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=True)
    return "; ".join(str(warning.message).strip() for warning in told) or "spaces, seeds, reset and step"


def _splits(env: "TextEnv") -> str:
    told = []
    for split, role in env.splits.items():
        tasks = env.task_set(split)
        if role not in ROLES or not len(tasks) or len(tasks.sha256) != 64:
            raise AgentRLError(f"{split}: role {role!r}, {len(tasks)} tasks, hash {tasks.sha256!r}")
        told.append(f"{split} {len(tasks):,}")
    if "train" not in env.splits.values():
        raise AgentRLError(f"no split has the role 'train'; there are: {', '.join(env.splits) or 'none'}")
    return ", ".join(told)


def _overlap(env: "TextEnv") -> str:
    ids = {"train": set[str](), "out_of_distribution": set[str]()}
    for split, role in env.splits.items():
        if role in ids:
            ids[role].update(env.task_set(split).first(OVERLAP_TRIED).ids)
    if both := sorted(ids["train"] & ids["out_of_distribution"]):
        raise AgentRLError(f"{len(both)} tasks are both, such as {both[0]!r}")
    return f"{len(ids['train']):,} and {len(ids['out_of_distribution']):,} tasks compared"


def _deterministic(env: "TextEnv", limited: Any) -> str:
    from agentrl.evaluation.players import random_player

    split = next(iter(env.splits))
    ids = env.task_set(split).first(4).ids
    for task_id in ids:
        texts = []
        for _ in range(2):
            observation, info = limited.reset(seed=7, options={"task_id": task_id})
            actor, ended, seen = random_player(7), False, [observation]
            while not ended and "admissible_actions" in info:
                observation, reward, terminated, truncated, info = limited.step(actor(observation, info))
                ended = terminated or truncated
                seen.append(f"{observation}\n{reward}\n{info.get('admissible_actions')}")
            texts.append(seen)
        if texts[0] != texts[1]:
            turn = next(
                (turn for turn, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), len(texts[0])
            )
            raise AgentRLError(f"task {task_id!r} differs from turn {turn} on")
    return f"{len(ids)} tasks of {split}"


def _play(env: "TextEnv", limited: Any, player: Callable[[int], Any], num_episodes: int) -> str:
    """Plays tasks of the first split and tells the success and the speed."""
    ids = env.task_set(next(iter(env.splits))).first(num_episodes).ids
    won, num_turns, step_s = 0, 0, 0.0
    for number in range(num_episodes):
        observation, info = limited.reset(seed=number, options={"task_id": ids[number % len(ids)]})
        actor, ended, total = player(number), False, 0.0
        while not ended:
            action = actor(observation, info)
            start = time.perf_counter()
            observation, reward, terminated, truncated, info = limited.step(action)
            step_s += time.perf_counter() - start
            ended, total, num_turns = terminated or truncated, total + float(reward), num_turns + 1
        won += bool(info.get("success", total > 0))
    rate, turns, speed = won / num_episodes, num_turns / num_episodes, 1000 * step_s / num_turns
    return f"success {share(rate)} of {num_episodes} episodes, {turns:.1f} turns, {speed:.3f} ms a step"
