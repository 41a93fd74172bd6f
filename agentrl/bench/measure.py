"""Seconds and memory of a call."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch.profiler import ProfilerActivity, profile


def least_s(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Gives the least seconds of each call; they take turns, so that a busy moment of the machine meets all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(times) for name, times in seconds.items()}


def peak_mib(call: Callable[[], Any]) -> float:
    """Gives the most memory that tensors made during a call take at a time, as the allocator reports it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    assert profiler.profiler is not None
    results: Any = profiler.profiler.kineto_results
    changes = sorted((event.start_ns(), event.nbytes()) for event in results.events() if event.name() == "[memory]")
    return float(np.maximum.accumulate(np.cumsum([size for _, size in changes]))[-1]) / 2**20
