import copy

import pytest

import agentrl
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import make_batch
from agentrl.chat import ChatFormat
from agentrl.config.schema import TrainingConfig
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.env import text_env
from agentrl.policy import Policy
from agentrl.prompts import Prompt
from agentrl.rollout import Collector, EngineAgent, Speaker
from agentrl.tally import Tally
from agentrl.tasks import TaskSampler
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import adamw, set_learning_rate
from agentrl.training.update import Updater
from tests.tiny import tiny_model, tiny_tokenizer


def success_rates(*, seed: int, steps: int) -> list[float]:
    """Gives the success rate of each step of GRPO from random weights, 128 episodes a step."""
    tokenizer = tiny_tokenizer()
    chat, policy = ChatFormat(tokenizer), Policy(tiny_model(len(tokenizer), hidden=64, seed=seed))
    engine = HFEngine(copy.deepcopy(policy.model))
    params = SamplingParams(temperature=1.0, max_tokens=2, stop_ids=chat.stop_ids)
    agent = EngineAgent(engine, Speaker(chat, Prompt()), params, context_tokens=100)
    collector = Collector(lambda: agentrl.make("agentrl/Guess-v0", max_turns=4), env_id="Guess", concurrency=128)
    tasks = text_env(agentrl.make("agentrl/Guess-v0")).task_set("train")
    sampler = TaskSampler(tasks, tasks_per_step=8, group_size=16, seed=seed)
    optimizer = adamw(policy, weight_decay=0.0)
    set_learning_rate(optimizer, 5e-3)
    algorithm = GRPO(GRPOConfig(kl_estimator="none"))
    updater = Updater(policy, algorithm, optimizer, config=TrainingConfig(minibatches=4), ranks=Ranks())
    rates = []
    for step in range(steps):
        played = collector.play(agent, sampler.batch(step))
        rates.append(Tally(played).success_rate)
        updater.update(updater.annotate(make_batch(played)), seed=step)
        engine.load_weights(policy.weights(), version=step + 1)
    return rates


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_random_model_learns_to_find_the_digit(seed: int) -> None:
    rates = success_rates(seed=seed, steps=50)
    assert sum(rates[:3]) / 3 < 0.15
    assert sum(rates[-10:]) / 10 > 0.3
