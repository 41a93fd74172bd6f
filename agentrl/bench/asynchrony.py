"""Steps a second when playing and learning take turns, and when one is played while another is learned from."""

import time
from collections.abc import Mapping
from dataclasses import replace

from agentrl import assembly
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.bench.workloads import ROLLOUT, guess_tokenizer, random_model
from agentrl.chat import ChatFormat
from agentrl.config import RunConfig
from agentrl.config.schema import TrainingConfig
from agentrl.engines._shared import SharedEngine
from agentrl.policy import Policy
from agentrl.tasks import TaskSampler
from agentrl.training.ahead import Ahead
from agentrl.training.distributed import Ranks
from agentrl.training.experience import Gatherer
from agentrl.training.optimizer import adamw
from agentrl.training.trainer import Trainer
from agentrl.training.update import Updater
from agentrl.training.weight_sync import WeightSync
from agentrl.trajectory import Trajectory

NUM_EPISODES, STEPS = 128, 6


def compare_asynchrony(*, repeats: int) -> dict[str, float]:
    """Gives seconds of a step in turn (`plain`) and with `max_staleness` 1 (`ours`), the least of `repeats` runs each.

    Each run has `STEPS` steps, the first of which, that nothing overlaps, counts too.
    """
    seconds: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(repeats):
        for max_staleness, found in seconds.items():
            trainer = _trainer(max_staleness)
            start = time.perf_counter()
            trainer.run()
            found.append((time.perf_counter() - start) / STEPS)
            trainer.gatherer.collector.close()
    plain, ours = min(seconds[0]), min(seconds[1])
    return {"plain_s": plain, "ours_s": ours, "time_ratio": ours / plain}


class _Nothing:
    """Keeps nothing."""

    def rollouts(self, step: int, trajectories: list[Trajectory]) -> None:
        """Keeps none."""

    def evaluate(self, step: int, *, last: bool) -> Mapping[str, float]:
        """Is never due."""
        return {}

    def checkpoint(self, step: int, version: int, *, last: bool) -> None:
        """Saves none."""


def _trainer(max_staleness: int) -> Trainer:
    """Gives a run of Guess with the model of the other workloads."""
    config = RunConfig[CRFNTFConfig].model_validate(ROLLOUT)
    weights = assembly.Weights(Policy(random_model()), ChatFormat(guess_tokenizer()))
    agent, algorithm = assembly.agent(config, weights), CRFNTF(CRFNTFConfig())
    if max_staleness:
        agent = replace(agent, engine=SharedEngine(agent.engine))
    sampler = TaskSampler(assembly.task_set(config, "train"), tasks_per_step=NUM_EPISODES, group_size=1, seed=0)
    gatherer = Gatherer(agent, assembly.collector(config), sampler, Ranks())
    training = TrainingConfig(steps=STEPS)
    updater = Updater(
        weights.policy, algorithm, adamw(weights.policy, weight_decay=0.0), config=training, ranks=Ranks()
    )
    ahead = Ahead(gatherer.gather, range(STEPS), max_staleness=max_staleness) if max_staleness else None
    sync = WeightSync.of(agent.engine, weights.policy, config.engine)
    return Trainer(gatherer, updater, _Nothing(), [], training, Ranks(), sync, ahead=ahead)
