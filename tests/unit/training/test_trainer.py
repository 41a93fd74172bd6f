import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
import torch

import agentrl
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import make_batch
from agentrl.chat import ChatFormat
from agentrl.config.engine import EngineConfig
from agentrl.config.schema import TrainingConfig
from agentrl.engines._base import SamplingParams
from agentrl.engines._shared import SharedEngine
from agentrl.engines.hf import HFEngine
from agentrl.env import text_env
from agentrl.policy import Policy
from agentrl.prompts import Prompt
from agentrl.rollout import Collector, EngineAgent, Speaker
from agentrl.tasks import TaskSampler
from agentrl.training.ahead import Ahead
from agentrl.training.distributed import Ranks
from agentrl.training.experience import Gatherer
from agentrl.training.optimizer import adamw
from agentrl.training.trainer import Trainer, staleness_metrics
from agentrl.training.update import Updater
from agentrl.training.weight_sync import WeightSync
from agentrl.trajectory import Trajectory
from tests.episodes import episode
from tests.tiny import tiny_model, tiny_tokenizer


@dataclass
class Memory:
    """Keeps a run's metrics and episodes."""

    lines: list[Mapping[str, float]] = field(default_factory=list)
    played: list[list[Trajectory]] = field(default_factory=list)

    def rollouts(self, step: int, trajectories: list[Trajectory]) -> None:
        self.played.append(trajectories)

    def evaluate(self, step: int, *, last: bool) -> Mapping[str, float]:
        return {}

    def checkpoint(self, step: int, version: int, *, last: bool) -> None:
        pass

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        self.lines.append(metrics)

    def close(self) -> None:
        pass


def trained(max_staleness: int | None, *, steps: int, seed: int = 0, groups: int = 2) -> tuple[Memory, torch.Tensor]:
    """Gives what GRPO makes of random weights on Guess, and the weights; None plays without a thread."""
    tokenizer = tiny_tokenizer()
    chat, policy = ChatFormat(tokenizer), Policy(tiny_model(len(tokenizer), hidden=64, seed=seed))
    params = SamplingParams(temperature=1.0, max_tokens=2, stop_ids=chat.stop_ids)
    engine = SharedEngine(HFEngine(copy.deepcopy(policy.model)))
    agent = EngineAgent(engine, Speaker(chat, Prompt()), params, context_tokens=100)
    collector = Collector(lambda: agentrl.make("agentrl/Guess-v0", max_turns=4), env_id="Guess", concurrency=128)
    tasks = text_env(agentrl.make("agentrl/Guess-v0")).task_set("train")
    gatherer = Gatherer(agent, collector, TaskSampler(tasks, tasks_per_step=groups, group_size=16, seed=seed), Ranks())
    config = TrainingConfig(steps=steps, learning_rate=5e-3, minibatches=4 if groups > 4 else 1)
    algorithm = GRPO(GRPOConfig(kl_estimator="none"))
    updater = Updater(policy, algorithm, adamw(policy, weight_decay=0.0), config=config, ranks=Ranks())
    memory = Memory()
    ahead = None if max_staleness is None else Ahead(gatherer.gather, range(steps), max_staleness=max_staleness)
    sync = WeightSync.of(engine, policy, EngineConfig(context_tokens=100, max_tokens=2))
    Trainer(gatherer, updater, memory, [memory], config, Ranks(), sync, ahead=ahead).run()
    return memory, torch.cat([value.detach().flatten() for value in policy.parameters()])


def without_clocks(line: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in line.items() if "time/" not in name and "_per_s" not in name}


def test_playing_ahead_by_nothing_is_playing_in_turn_bit_for_bit() -> None:
    in_turn, weights = trained(None, steps=3)
    in_thread, others = trained(0, steps=3)
    assert torch.equal(weights, others)
    assert [*map(without_clocks, in_turn.lines)] == [*map(without_clocks, in_thread.lines)]
    assert {turn.policy_version for one in in_thread.played[2] for turn in one.turns} == {2}


@pytest.mark.parametrize("max_staleness", [1, 2])
def test_no_token_that_is_trained_on_is_staler_than_allowed(max_staleness: int) -> None:
    memory, _ = trained(max_staleness, steps=6)
    assert len(memory.lines) == 6
    assert all(0 <= line["rollout/staleness_max"] <= max_staleness for line in memory.lines)
    assert all("time/wait_s" in line and "time/rollout_s" not in line for line in memory.lines)
    for step, played in enumerate(memory.played):
        assert all(step - max_staleness <= turn.policy_version <= step for one in played for turn in one.turns)


def test_staleness_is_counted_by_token() -> None:
    batch = make_batch([episode(0, [3]), episode(1, [1])])  # all of version 0
    assert staleness_metrics(batch, 2) == {"rollout/staleness_mean": 2, "rollout/staleness_max": 2}
    batch.policy_version[1][batch.action_mask[1]] = 2
    assert staleness_metrics(batch, 2) == {"rollout/staleness_mean": 2 * 3 / 4, "rollout/staleness_max": 2}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_model_learns_from_episodes_of_older_weights(seed: int) -> None:
    memory, _ = trained(1, steps=50, seed=seed, groups=8)
    rates = [line["rollout/success_rate"] for line in memory.lines]
    assert sum(rates[:3]) / 3 < 0.15
    assert sum(rates[-10:]) / 10 > 0.3
    assert max(line["rollout/staleness_max"] for line in memory.lines) == 1
