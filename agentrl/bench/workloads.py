"""Fixed workloads for rollouts and updates: agentrl/Guess-v0 and a random four-layer model of 128 dimensions.

They say how fast the framework is around a model, and whether a change made it slower; a large model's speed is its
own.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from agentrl import assembly
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.batch import make_batch
from agentrl.chat import ChatFormat
from agentrl.config import RunConfig
from agentrl.config.schema import TrainingConfig
from agentrl.policy import Policy
from agentrl.tasks import TaskSampler
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import adamw, set_learning_rate
from agentrl.training.update import Updater
from agentrl.trajectory import Ending, Trajectory, Turn
from agentrl.word_tokenizer import SPECIAL, word_tokenizer

TOKENS = [*SPECIAL, *"0123456789", "higher", "lower", "correct"]
ROLLOUT = {
    "env": {"id": "agentrl/Guess-v0"},
    "model": {"path": "random"},
    "engine": {"max_tokens": 16, "context_tokens": 512},
    "rollout": {"concurrency": 64},
    "algorithm": {"name": "c_rf_ntf"},
}
NUM_EPISODES = 64
NUM_TRAJECTORIES, NUM_TURNS, PROMPT_TOKENS, ACTION_TOKENS = 64, 8, 24, 8


def measure_rollout(*, repeats: int = 3) -> dict[str, float]:
    """Gives action and prompt tokens a second of 64 episodes of Guess, six turns each; the median of `repeats`."""
    config = RunConfig[CRFNTFConfig].model_validate(ROLLOUT)
    weights = assembly.Weights(Policy(random_model()), ChatFormat(guess_tokenizer()))
    agent, collector = assembly.agent(config, weights), assembly.collector(config)
    tasks = TaskSampler(assembly.task_set(config, "train"), tasks_per_step=NUM_EPISODES, group_size=1, seed=0)
    played: list[Trajectory] = []

    def play() -> None:
        played[:] = collector.play(agent, tasks.batch(0))

    seconds = _median_s(play, repeats)
    collector.close()
    turns = [turn for trajectory in played for turn in trajectory.turns]
    return {
        "action_tokens_per_s": sum(len(turn.action_ids) for turn in turns) / seconds,
        "prompt_tokens_per_s": sum(len(turn.prompt_ids) for turn in turns) / seconds,
        "turns_per_s": len(turns) / seconds,
        "seconds": seconds,
        **_peak_gib(),
    }


def measure_update(*, repeats: int = 3) -> dict[str, float]:
    """Gives tokens a second of an update with 64 trajectories of 256 tokens, a quarter of them sampled."""
    batch = make_batch(_trajectories(np.random.default_rng(0)))
    policy = Policy(random_model())
    optimizer = adamw(policy, weight_decay=0.0)
    set_learning_rate(optimizer, 1e-6)
    updater = Updater(policy, CRFNTF(CRFNTFConfig()), optimizer, config=TrainingConfig(), ranks=Ranks())
    annotate_s = _median_s(lambda: updater.annotate(batch), repeats)
    annotated = updater.annotate(batch)
    update_s = _median_s(lambda: updater.update(annotated, seed=0), repeats)
    tokens = int(batch.attention_mask.sum())
    return {
        "tokens_per_s": tokens / (annotate_s + update_s),
        "annotate_s": annotate_s,
        "update_s": update_s,
        "tokens": tokens,
        **_peak_gib(),
    }


def random_model(*, max_tokens: int = 512, seed: int = 0) -> PreTrainedModel:
    """Gives the model, the same weights for a seed."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(TOKENS),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=max_tokens,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=TOKENS.index("<eot>"),
        pad_token_id=TOKENS.index("<pad>"),
    )
    return Qwen2ForCausalLM(config)


def guess_tokenizer() -> PreTrainedTokenizerFast:
    """Gives a tokenizer whose tokens are the words of Guess."""
    return word_tokenizer(TOKENS[len(SPECIAL) :])


def _trajectories(rng: np.random.Generator) -> list[Trajectory]:
    """Gives growing conversations of random tokens; every second one is won."""
    played = []
    for number in range(NUM_TRAJECTORIES):
        ids: tuple[int, ...] = ()
        turns = []
        for turn in range(NUM_TURNS):
            prompt = (*ids, *rng.integers(len(TOKENS), size=PROMPT_TOKENS).tolist())
            action = tuple(rng.integers(len(TOKENS), size=ACTION_TOKENS).tolist())
            reward = float(number % 2 and turn == NUM_TURNS - 1)
            turns.append(Turn(prompt, action, (-3.0,) * ACTION_TOKENS, observation="", action="", reward=reward))
            ids = prompt + action
        played.append(Trajectory("bench", str(number), number, number // 8, tuple(turns), Ending.TERMINATED))
    return played


def _median_s(call: Callable[[], Any], repeats: int) -> float:
    """Gives the seconds of a call, the median of several after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _peak_gib() -> dict[str, float]:
    """Gives the GPU's peak memory, where there is a GPU."""
    return {"peak_gib": torch.cuda.max_memory_allocated() / 2**30} if torch.cuda.is_available() else {}
