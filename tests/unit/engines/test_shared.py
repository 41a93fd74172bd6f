import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence

import pytest
from torch import Tensor

from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines._shared import SharedEngine

PARAMS = SamplingParams(temperature=1.0, max_tokens=4, stop_ids=frozenset())


class SlowEngine:
    """An engine whose first request waits until it is let go; it notes what is asked of it, in order."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.log: list[str] = []
        self.version = 0

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        self.log.append(f"begin {seed}")
        self.asked.set()
        while seed == 0 and not self.let_go.is_set():
            await asyncio.sleep(0)
        self.log.append(f"end {seed}")
        return Completion((1,), (0.0,), "stop", self.version)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        self.log.append(f"load {version}" + "".join(f" {name}" for name, _ in weights))
        self.version = version

    def score(self, ids: Sequence[int]) -> Sequence[float]:
        self.log.append(f"score {len(ids)}")
        return [0.0] * (len(ids) - 1)

    def sleep(self) -> None:
        self.log.append("sleep")

    def close(self) -> None:
        self.log.append("close")


def test_weights_wait_for_the_requests_in_flight_and_later_requests_for_the_weights() -> None:
    slow = SlowEngine()
    engine = SharedEngine(slow)
    found: list[int] = []

    async def ask() -> None:
        first = asyncio.create_task(engine.generate((1,), PARAMS, seed=0))
        while not engine._is_held:
            await asyncio.sleep(0)
        second = asyncio.create_task(engine.generate((1,), PARAMS, seed=1))
        await asyncio.sleep(0)
        slow.let_go.set()
        found.extend(one.version for one in await asyncio.gather(first, second))

    player = threading.Thread(target=lambda: asyncio.run(ask()))
    player.start()
    slow.asked.wait()
    engine.load_weights([], version=7)
    player.join()
    assert slow.log == ["begin 0", "end 0", "load 7", "begin 1", "end 1"]
    assert found == [0, 7]


def test_without_requests_weights_are_loaded_at_once() -> None:
    slow = SlowEngine()
    engine = SharedEngine(slow)
    engine.load_weights([], version=3)
    assert asyncio.run(engine.generate((1,), PARAMS, seed=5)).version == 3
    engine.close()
    assert slow.log == ["load 3", "begin 5", "end 5", "close"]


def test_a_request_that_fails_is_no_longer_in_flight() -> None:
    class Broken(SlowEngine):
        async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
            raise RuntimeError("out of memory")

    broken = Broken()
    engine = SharedEngine(broken)
    with pytest.raises(RuntimeError, match="out of memory"):
        asyncio.run(engine.generate((1,), PARAMS, seed=0))
    engine.load_weights([], version=1)
    assert broken.log == ["load 1"]


def test_an_engine_is_asked_to_score_but_not_to_sleep_while_another_thread_may_sample() -> None:
    slow = SlowEngine()
    engine = SharedEngine(slow)
    engine.sleep()
    assert engine.score((4, 5, 6)) == [0.0, 0.0]
    assert slow.log == ["score 3"]


def test_weights_arrive_though_whoever_waited_for_them_has_left_with_its_loop() -> None:
    slow = SlowEngine()
    engine = SharedEngine(slow)

    async def give_up() -> None:
        asked = asyncio.create_task(engine.generate((1,), PARAMS, seed=1))
        while not engine._waiting:
            await asyncio.sleep(0)
        asked.cancel()

    def weights() -> Iterator[tuple[str, Tensor]]:
        asyncio.run(give_up())
        yield from ()

    engine.load_weights(weights(), version=1)
    assert asyncio.run(engine.generate((1,), PARAMS, seed=2)).ids == (1,)
    assert slow.log == ["load 1", "begin 2", "end 2"]
