"""Time to a reward: GRPO on agentrl/Guess-v0 by agentrl and by TRL, from the same random model."""

import copy
import functools
import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentrl import assembly
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import make_batch
from agentrl.bench.rollouts import Workload
from agentrl.bench.workloads import guess_tokenizer, random_model
from agentrl.chat import ChatFormat
from agentrl.config.schema import TrainingConfig
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.env import make, text_env
from agentrl.policy import Policy
from agentrl.prompts import Prompt
from agentrl.rollout import Collector, EngineAgent, Speaker
from agentrl.tasks import TaskSampler, TaskSet
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import adamw, set_learning_rate
from agentrl.training.update import Updater

NUM_TASKS, GROUP_SIZE, MOST_TURNS = 8, 8, 4
LEARNING_RATE = 1e-3
ENV_ID = "agentrl/Guess-v0"


def measure_reward(target: float, *, seeds: int = 3, most_steps: int = 200) -> list[dict[str, Any]]:
    """Gives a row for agentrl and, where it is installed, for TRL: what it took until the mean reward of a step.

    Both play the same tasks in the same groups with the same limits, and make one optimizer step of each batch. Of
    several seeds, each with weights of its own, seconds and steps are summed: one run may be lucky.
    """
    trainers: dict[str, Callable[[Workload, float, int], list[float]]] = {"agentrl": train}
    if importlib.util.find_spec("trl"):
        from agentrl.bench.peers import trl_train

        trainers["trl"] = functools.partial(trl_train, num_generations=GROUP_SIZE, learning_rate=LEARNING_RATE)
    rows = {name: {"steps": 0, "seconds": 0.0, "cpu_s": 0.0} for name in trainers}
    reached: dict[str, list[float]] = {name: [] for name in trainers}
    for seed in range(seeds):
        work = guess(seed)
        for name, run in trainers.items():
            began, cpu = time.perf_counter(), time.process_time()
            rewards = run(work, target, most_steps)
            rows[name]["seconds"] += time.perf_counter() - began
            rows[name]["cpu_s"] += time.process_time() - cpu
            rows[name]["steps"] += len(rewards)
            reached[name].append(rewards[-1])
    return [
        {
            "trainer": name,
            "seeds": seeds,
            "least_reached": min(reached[name]),
            **row,
            "s_per_step": row["seconds"] / row["steps"],
            "time_ratio": rows["agentrl"]["seconds"] / row["seconds"],
        }
        for name, row in rows.items()
    ]


def guess(seed: int) -> Workload:
    """Gives the tasks, in groups, and the model, the same weights for a seed."""
    chat = ChatFormat(guess_tokenizer())
    policy = Policy(random_model(seed=seed))
    params = SamplingParams(temperature=1.0, max_tokens=4, stop_ids=chat.stop_ids)
    make_env = functools.partial(make, ENV_ID, max_turns=MOST_TURNS)
    task_set = text_env(make_env()).task_set("train")
    sampler = TaskSampler(
        TaskSet("train", task_set.ids[:NUM_TASKS], ""), tasks_per_step=NUM_TASKS, group_size=GROUP_SIZE, seed=seed
    )
    agent = EngineAgent(HFEngine(copy.deepcopy(policy.model)), Speaker(chat, Prompt()), params, context_tokens=512)
    return Workload(assembly.Weights(policy, chat), agent, make_env, sampler.batch(0), ENV_ID)


def train(work: Workload, target: float, most_steps: int) -> list[float]:
    """Gives the mean reward of each step of agentrl's GRPO, up to the first that reaches `target`."""
    policy = Policy(work.model())
    agent = work.on(HFEngine(work.model()))
    collector = Collector(work.make_env, env_id=work.env_id, concurrency=len(work.tasks))
    optimizer = adamw(policy, weight_decay=0.0)
    set_learning_rate(optimizer, LEARNING_RATE)
    config = GRPOConfig(kl_estimator="none")
    updater = Updater(policy, GRPO(config), optimizer, config=TrainingConfig(), ranks=Ranks())
    rewards: list[float] = []
    for step in range(most_steps):
        tasks = [replace(task, seed=task.seed + step) for task in work.tasks]
        played = collector.play(agent, tasks)
        rewards.append(sum(turn.reward for one in played for turn in one.turns) / len(played))
        if rewards[-1] >= target:
            break
        updater.update(updater.annotate(make_batch(played)), seed=step)
        agent.engine.load_weights(policy.weights(), version=step + 1)
    collector.close()
    return rewards
