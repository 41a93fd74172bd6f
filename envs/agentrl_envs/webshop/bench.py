"""How fast the shop opens, searches and turns pages, and what a visit weighs."""

import copy
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Sequence

from agentrl_envs.webshop.env import WebShop
from agentrl_envs.webshop.goals import Goal
from agentrl_envs.webshop.source import load_shop

_NUM_GOALS = 256
_NUM_WEIGHED = 200


def measure_env(env: WebShop, seconds: float) -> dict[str, float]:
    """Gives the speed of a shop on one core, most of it measured for `seconds`: `agentrl bench env WebShop` prints it.

    Returns:
        `startup_s`, seconds to open the shop once more; `num_products`; the medians `search_ms` of searching with the
        words of a request and `step_ms` of the expert's steps, with the search among them; `env_kb`, the memory that
        one more environment in the middle of an episode takes.
    """
    start = time.perf_counter()
    load_shop(env.source)
    startup_s = time.perf_counter() - start
    goals = [env.shop.goals[id] for id in env.task_set("train").first(_NUM_GOALS).ids]
    return {
        "startup_s": startup_s,
        "num_products": len(env.shop.catalogue.products),
        "search_ms": _search_ms(env, goals, seconds),
        "step_ms": _step_ms(env, goals, seconds),
        "env_kb": _env_kb(env, goals),
    }


def _search_ms(env: WebShop, goals: Sequence[Goal], seconds: float) -> float:
    times: list[float] = []
    for goal in itertools.cycle(goals):
        start = time.perf_counter()
        env.shop.search(goal.instruction)
        times.append(time.perf_counter() - start)
        if sum(times) > seconds:
            return 1000 * statistics.median(times)
    raise AssertionError("there are no requests")


def _step_ms(env: WebShop, goals: Sequence[Goal], seconds: float) -> float:
    times: list[float] = []
    for number, goal in enumerate(itertools.cycle(goals)):
        observation, info = env.reset(options={"task_id": goal.id})
        player, terminated = env.expert(number), False
        while not terminated:
            action = player(observation, info)
            start = time.perf_counter()
            observation, _, terminated, _, info = env.step(action)
            times.append(time.perf_counter() - start)
        if sum(times) > seconds:
            return 1000 * statistics.median(times)
    raise AssertionError("there are no requests")


def _env_kb(env: WebShop, goals: Sequence[Goal]) -> float:
    def begin(number: int) -> WebShop:
        one = copy.copy(env)
        one.reset(seed=number, options={"task_id": goals[number % len(goals)].id})
        one.step(f"search[{goals[number % len(goals)].instruction}]")
        return one

    begin(0)
    tracemalloc.start()
    kept = [begin(number) for number in range(_NUM_WEIGHED)]
    weight, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return weight / len(kept) / 1000
