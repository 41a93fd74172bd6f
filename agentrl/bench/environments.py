"""How many steps a second an environment plays."""

import importlib
import importlib.util
import time
from typing import Any

import gymnasium

from agentrl.env import make, text_env
from agentrl.evaluation.players import random_player


def measure_env(env_id: str, *, seconds: float, options: dict[str, Any]) -> dict[str, float]:
    """Gives the speed of a random player on the tasks of the first split, in turn, for about `seconds`.

    Where actions are not listed, as in open text, it is the expert that plays.

    An environment that has a `bench` module in its package adds what that measures: `measure_env(env, seconds)`.

    Returns:
        `steps_per_s`, `reset_ms`, and whatever the environment's own bench adds.
    """
    env = make(env_id, **options)
    inner = text_env(env)
    tasks = inner.task_set(next(iter(inner.splits))).first(32).ids
    step_s, reset_s, num_steps, num_resets = 0.0, 0.0, 0, 0
    while step_s + reset_s < seconds:
        start = time.perf_counter()
        observation, info = env.reset(seed=num_resets, options={"task_id": tasks[num_resets % len(tasks)]})
        reset_s += time.perf_counter() - start
        actor, ended = (random_player if "admissible_actions" in info else inner.expert)(num_resets), False
        num_resets += 1
        while not ended:
            action = actor(observation, info)
            start = time.perf_counter()
            observation, _, terminated, truncated, info = env.step(action)
            step_s += time.perf_counter() - start
            ended, num_steps = terminated or truncated, num_steps + 1
    found = {"steps_per_s": num_steps / step_s, "reset_ms": 1000 * reset_s / num_resets}
    own = _own_bench(env_id)
    found |= own.measure_env(inner, seconds) if own else {}
    env.close()
    return found


def _own_bench(env_id: str) -> Any | None:
    """Gives the module `bench` beside the environment's, if there is one."""
    entry_point = gymnasium.spec(env_id.rpartition(":")[2]).entry_point
    package = entry_point.rpartition(":")[0].rpartition(".")[0] if isinstance(entry_point, str) else ""
    if not package or importlib.util.find_spec(f"{package}.bench") is None:
        return None
    return importlib.import_module(f"{package}.bench")
