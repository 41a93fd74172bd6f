"""How many steps a second the engines play."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentrl_envs.alfworld.engine import Engine, PythonEngine
from agentrl_envs.alfworld.env import ALFWorld
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.stock import TextWorldEngine, stock_is_installed

_STEPS_PER_GAME = 50
_NUM_GAMES = 32


def measure_env(env: ALFWorld, seconds: float) -> dict[str, float]:
    """Gives the speed of the engines on 32 training games of an environment: `agentrl bench env ALFWorld` prints it."""
    source = env.source
    games = [source.game(id) for id in source.task_set("train").first(_NUM_GAMES).ids]
    return measure(seconds, games, documents=source.document)


def measure(
    seconds: float,
    games: Sequence[Game],
    *,
    documents: Callable[[str], Mapping[str, Any]] | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Gives the speed of random play, admissible commands included, each engine on the same games for `seconds`.

    Args:
        seconds: How long each engine plays, in seconds of the clock.
        games: Played in turn, 50 steps each.
        documents: Gives `game.tw-pddl` contents by id; with it, and the textworld extra, the stock engine plays too.
        seed: Of the random commands.

    Returns:
        `python_steps_per_s` and `python_reset_ms`; with the stock engine also `stock_steps_per_s`, `stock_reset_ms` and
        `speedup`, the ratio of the steps per second.
    """
    results = _measure(PythonEngine(), "python", seconds, games, random.Random(seed))
    if documents is not None and stock_is_installed():
        stock = TextWorldEngine(documents)
        try:
            results |= _measure(stock, "stock", seconds, games, random.Random(seed))
        finally:
            stock.close()
        results["speedup"] = results["python_steps_per_s"] / results["stock_steps_per_s"]
    return results


def _measure(engine: Engine, name: str, seconds: float, games: Sequence[Game], rng: random.Random) -> dict[str, float]:
    engine.reset(games[0])  # the first reset starts the process of the stock engine
    num_steps, num_resets, step_s, reset_s = 0, 0, 0.0, 0.0
    while step_s + reset_s < seconds:
        began = time.perf_counter()
        played = engine.reset(games[num_resets % len(games)])
        ready = time.perf_counter()
        for _ in range(_STEPS_PER_GAME):
            played = engine.step(played.admissible[int(rng.random() * len(played.admissible))])
        reset_s += ready - began
        step_s += time.perf_counter() - ready
        num_steps += _STEPS_PER_GAME
        num_resets += 1
    return {f"{name}_steps_per_s": num_steps / step_s, f"{name}_reset_ms": 1000 * reset_s / num_resets}
