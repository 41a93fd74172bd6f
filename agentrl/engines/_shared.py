"""One engine for two threads: who plays, and who hands it new weights."""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from torch import Tensor

from agentrl.engines._base import Completion, RolloutEngine, SamplingParams


class SharedEngine:
    """Lets one thread load weights while another's event loop samples: never during a request.

    Who loads waits for the requests in flight; who asks meanwhile waits until the weights are there. So all tokens of a
    turn are of one version, and an episode may go on with newer weights than it began with.
    """

    def __init__(self, engine: RolloutEngine) -> None:
        self._engine = engine
        self._changed = threading.Condition()
        self._in_flight = 0
        self._is_held = False
        self._waiting: list[asyncio.Future[None]] = []

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives the engine's continuation, once no weights are being loaded."""
        await self._enter()
        try:
            return await self._engine.generate(prompt_ids, params, seed=seed)
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Hands the weights over between two requests."""
        with self._held():
            self._engine.load_weights(weights, version=version)

    def score(self, ids: Sequence[int]) -> Sequence[float]:
        """Gives what the engine says of `ids`; reading disturbs no request."""
        return self._engine.score(ids)

    def sleep(self) -> None:
        """Does nothing: the other thread may sample meanwhile."""

    def close(self) -> None:
        """Closes the engine."""
        self._engine.close()

    async def _enter(self) -> None:
        """Counts a request in, once the engine is free for it."""
        while True:
            with self._changed:
                if not self._is_held:
                    self._in_flight += 1
                    return
                free = asyncio.get_running_loop().create_future()
                self._waiting.append(free)
            await free

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keeps requests out, after those in flight have their answers."""
        with self._changed:
            self._is_held = True
            self._changed.wait_for(lambda: self._in_flight == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_held = False
                waiting, self._waiting = self._waiting, []
            for free in waiting:
                with suppress(RuntimeError):  # its loop is closed: who waited gave up and left
                    free.get_loop().call_soon_threadsafe(_wake, free)


def _wake(free: "asyncio.Future[None]") -> None:
    """Ends a wait, unless it was given up."""
    if not free.done():
        free.set_result(None)
