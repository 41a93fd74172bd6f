"""The loop: play, judge, update, sync, log. Read `Trainer.step` first."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, runtime_checkable

from agentrl.batch import make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.rollout import Collector, EngineAgent
from agentrl.tally import Tally
from agentrl.tasks import TaskSampler
from agentrl.trackers._base import Tracker
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import learning_rate, set_learning_rate
from agentrl.training.update import Updater
from agentrl.trajectory import Trajectory


@runtime_checkable
class Keeper(Protocol):
    """What a run keeps beside its metrics; called by the main process only."""

    def rollouts(self, step: int, trajectories: list[Trajectory]) -> None:
        """May keep a step's trajectories."""
        ...

    def evaluate(self, step: int, *, last: bool) -> Mapping[str, float]:
        """May evaluate after `step` completed steps; gives the metrics, none when it is not due."""
        ...

    def checkpoint(self, step: int, version: int, *, last: bool) -> None:
        """May save a checkpoint after `step` completed steps."""
        ...


class Trainer:
    """Trains an agent: the parts are given, the order is here."""

    def __init__(
        self,
        *,
        agent: EngineAgent,
        collector: Collector,
        sampler: TaskSampler,
        updater: Updater,
        keeper: Keeper,
        trackers: list[Tracker],
        config: TrainingConfig,
        ranks: Ranks,
        optimizer: Any,
        weights: Callable[[], Any],
        first_step: int = 0,
        version: int = 0,
    ) -> None:
        self._agent = agent
        self._collector = collector
        self._sampler = sampler
        self._updater = updater
        self._keeper = keeper
        self._trackers = trackers
        self._config = config
        self._ranks = ranks
        self._optimizer = optimizer
        self._weights = weights
        self._first_step = first_step
        self._version = version

    def run(self) -> None:
        """Trains to the last step; evaluates before the first and after the last.

        A resumed run evaluates its first step again when that was due: its trackers have forgotten that they knew.
        """
        self._sync()
        self._evaluate(self._first_step)
        for step in range(self._first_step, self._config.steps):
            metrics = self.step(step)
            self._log(metrics, step)
            done = step + 1
            self._evaluate(done)
            if self._ranks.is_main:
                self._keeper.checkpoint(done, self._version, last=done == self._config.steps)
        for tracker in self._trackers:
            tracker.close()

    def step(self, step: int) -> dict[str, float]:
        """Plays one batch of episodes, learns from it and gives the metrics."""
        clock = Clock()
        with clock("rollout"):
            tasks = self._ranks.share(self._sampler.batch(step))
            trajectories = self._ranks.merge(self._collector.play(self._agent, tasks))
        if self._ranks.is_main:
            self._keeper.rollouts(step, trajectories)
        sampled = sum(trajectory.num_action_tokens for trajectory in trajectories)
        metrics = Tally(trajectories).metrics() | {"rollout/tokens_per_s": sampled / clock.seconds("rollout")}
        batch = make_batch(trajectories)
        rate = learning_rate(self._config, step)
        set_learning_rate(self._optimizer, rate)
        if batch.action_mask.any():
            with clock("annotate"):
                batch = self._updater.annotate(batch)
            with clock("update"):
                metrics |= self._updater.update(batch, seed=self._config.seed * 1_000_003 + step)
            self._version += 1
        with clock("sync"):
            self._sync()
        return metrics | {"policy/learning_rate": rate} | clock.metrics()

    def _sync(self) -> None:
        self._agent.engine.load_weights(self._weights(), version=self._version)

    def _evaluate(self, done: int) -> None:
        if self._ranks.is_main:
            start = time.perf_counter()
            metrics = self._keeper.evaluate(done, last=done == self._config.steps)
            if metrics:
                self._log({**metrics, "time/eval_s": time.perf_counter() - start}, done)
        self._ranks.wait()

    def _log(self, metrics: Mapping[str, float], step: int) -> None:
        if self._ranks.is_main:
            for tracker in self._trackers:
                tracker.log(metrics, step=step)


class Clock:
    """Seconds of a step's phases."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._phases: dict[str, float] = {}

    @contextmanager
    def _time(self, phase: str) -> Any:
        start = time.perf_counter()
        yield
        self._phases[f"time/{phase}_s"] = time.perf_counter() - start

    def __call__(self, phase: str) -> AbstractContextManager[None]:
        """Gives a context whose duration is the phase's."""
        return self._time(phase)

    def seconds(self, phase: str) -> float:
        """Gives how long a phase took."""
        return self._phases[f"time/{phase}_s"]

    def metrics(self) -> dict[str, float]:
        """Gives each phase and the whole step."""
        return self._phases | {"time/step_s": time.perf_counter() - self._start}
