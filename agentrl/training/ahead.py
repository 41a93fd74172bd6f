"""Playing ahead: the episodes of coming steps are played in a thread while earlier ones are learned from."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agentrl.training.experience import Experience


class Ahead:
    """Plays steps in order, at most `max_staleness` steps before what is in the engine.

    The episodes of step s begin when the updates of the first s - max_staleness steps are in the engine, and each step
    makes one version at most: so no token is older than `max_staleness` versions when it is trained on, and none has to
    be dropped.
    """

    def __init__(self, gather: Callable[[int], Experience], steps: range, *, max_staleness: int) -> None:
        self._gather = gather
        self._steps = steps
        self._max_staleness = max_staleness
        self._changed = threading.Condition()
        self._plays = threading.Lock()
        self._learned = steps.start
        self._ready: dict[int, Experience] = {}
        self._error: BaseException | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._play, name="rollouts", daemon=True)

    def start(self) -> None:
        """Begins to play; the engine must have its weights."""
        self._thread.start()

    def take(self, step: int) -> Experience:
        """Gives the episodes of a step, which may still have to be waited for.

        Raises whatever went wrong while they, or those of a later step, were played.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or step in self._ready)
            if self._error is not None:
                raise self._error
            return self._ready.pop(step)

    def learned(self, steps: int) -> None:
        """Says that the updates of the first `steps` steps are in the engine."""
        with self._changed:
            self._learned = steps
            self._changed.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keeps others' use of engine and environments apart from the playing: between two steps."""
        with self._plays:
            yield

    def close(self) -> None:
        """Ends the playing, after the step that is being played; does not wait for it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _play(self) -> None:
        try:
            for step in self._steps:
                if not self._may_play(step):
                    return
                with self._plays:
                    experience = self._gather(step)
                with self._changed:
                    self._ready[step] = experience
                    self._changed.notify_all()
        except BaseException as error:  # the other thread must hear of it, or it waits for ever
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _may_play(self, step: int) -> bool:
        """Waits until a step's turn has come; false: it will not come."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or step <= self._learned + self._max_staleness)
            return not self._is_closed
