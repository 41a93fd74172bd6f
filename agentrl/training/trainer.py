"""The loop: play, judge, update, sync, log. Read `Trainer.step` first."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agentrl.batch import Batch, make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.trackers._base import Tracker
from agentrl.training.ahead import Ahead
from agentrl.training.distributed import Ranks
from agentrl.training.experience import Experience, Gatherer
from agentrl.training.optimizer import learning_rate
from agentrl.training.update import Updater
from agentrl.training.weight_sync import WeightSync
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


@dataclass
class Trainer:
    """Trains an agent: the parts are given, the order is here."""

    gatherer: Gatherer
    updater: Updater
    keeper: Keeper
    trackers: Sequence[Tracker]
    config: TrainingConfig
    ranks: Ranks
    sync: WeightSync
    next_step: int = 0
    """The step that comes next: 0, or where a resumed run goes on."""
    version: int = 0
    """How many versions of the weights there have been."""
    ahead: Ahead | None = None
    """Plays later steps meanwhile; None plays each step when it is due."""

    def run(self) -> None:
        """Trains to the last step; evaluates before the first and after the last.

        A resumed run evaluates its first step again when that was due: its trackers have forgotten that they knew.
        """
        self.sync(self.version)
        self._evaluate()
        if self.ahead:
            self.ahead.start()
        try:
            while self.next_step < self.config.steps:
                self._log(self.step(), self.next_step)
                self.next_step += 1
                self._evaluate()
                if self.ranks.is_main:
                    self.keeper.checkpoint(self.next_step, self.version, last=self._is_done)
        finally:
            if self.ahead:
                self.ahead.close()
        for tracker in self.trackers:
            tracker.close()

    def step(self) -> dict[str, float]:
        """Plays one batch of episodes, learns from it and gives the metrics."""
        clock, step = Clock(), self.next_step
        experience = self._experience(step, clock)
        self.gatherer.agent.engine.sleep()
        if self.ranks.is_main:
            self.keeper.rollouts(step, experience.played)
        sampled = sum(trajectory.num_action_tokens for trajectory in experience.played)
        metrics = experience.metrics | {"rollout/tokens_per_s": sampled / experience.seconds}
        batch = make_batch(experience.trajectories, experience.baselines)
        metrics |= staleness_metrics(batch, self.version)
        rate = learning_rate(self.config, step)
        self.updater.set_learning_rate(rate)
        if batch.action_mask.any():
            with clock("annotate"):
                batch = self.updater.annotate(batch)
            with clock("update"):
                metrics |= self.updater.update(batch, seed=self.config.seed * 1_000_003 + step)
            self.version += 1
        with clock("sync"):
            metrics |= self.sync(self.version)
        if self.ahead:
            self.ahead.learned(step + 1)
        return metrics | {"policy/learning_rate": rate} | clock.metrics()

    def _experience(self, step: int, clock: "Clock") -> Experience:
        if self.ahead:
            with clock("wait"):
                return self.ahead.take(step)
        with clock("rollout"):
            return self.gatherer.gather(step)

    @property
    def _is_done(self) -> bool:
        return self.next_step == self.config.steps

    def _evaluate(self) -> None:
        if self.ranks.is_main:
            start = time.perf_counter()
            with self.ahead.paused() if self.ahead else nullcontext():
                metrics = self.keeper.evaluate(self.next_step, last=self._is_done)
            if metrics:
                self._log({**metrics, "time/eval_s": time.perf_counter() - start}, self.next_step)
        self.ranks.wait()

    def _log(self, metrics: Mapping[str, float], step: int) -> None:
        if self.ranks.is_main:
            for tracker in self.trackers:
                tracker.log(metrics, step=step)


def staleness_metrics(batch: Batch, version: int) -> dict[str, float]:
    """Gives how many versions older than `version` the weights were that sampled the action tokens."""
    if not batch.action_mask.any():
        return {}
    staleness = (version - batch.policy_version[batch.action_mask]).double()
    return {"rollout/staleness_mean": float(staleness.mean()), "rollout/staleness_max": float(staleness.max())}


class Clock:
    """Seconds of a step's phases."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._phases: dict[str, float] = {}

    @contextmanager
    def _time(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._phases[f"time/{phase}_s"] = time.perf_counter() - start

    def __call__(self, phase: str) -> AbstractContextManager[None]:
        """Gives a context whose duration is the phase's."""
        return self._time(phase)

    def metrics(self) -> dict[str, float]:
        """Gives each phase and the whole step."""
        return self._phases | {"time/step_s": time.perf_counter() - self._start}
