"""A training step on this machine: tokens a second of rollout and update, and how much of its peak the update reaches.

The model has Qwen2.5's shape and random weights, the conversations are random tokens: nothing is downloaded, and no
environment is waited for.
"""

import asyncio
import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.batch import make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.policy import Policy
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import adamw, set_learning_rate
from agentrl.training.update import Updater
from agentrl.trajectory import Ending, Trajectory, Turn

PEAK_TFLOPS = {"B200": 2250.0, "H200": 989.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0, "4090": 165.0}
"""Dense bfloat16, as NVIDIA's data sheets say, by a part of the device's name."""


@dataclass(frozen=True)
class Shape:
    """A model of Qwen2.5's family and how much is played with it."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    episodes: int
    turns: int
    observation_tokens: int
    action_tokens: int


SHAPES = {
    "tiny": Shape(512, 64, 160, 2, 4, 2, episodes=8, turns=3, observation_tokens=24, action_tokens=8),
    "0.5b": Shape(151_936, 896, 4864, 24, 14, 2, episodes=128, turns=8, observation_tokens=96, action_tokens=64),
    "1.5b": Shape(151_936, 1536, 8960, 28, 12, 2, episodes=128, turns=8, observation_tokens=96, action_tokens=64),
}


def measure_machine(name: str, *, peak_tflops: float | None = None, steps: int = 2) -> dict[str, Any]:
    """Gives the last of some steps of the shape `name`; the first warms up.

    Returns:
        `rollout_action_tokens_per_s`, `rollout_tokens_per_s` (prompts included, each token once),
        `update_tokens_per_s`, `rollout_frac` of the step's time, `peak_gib` of the device (0 without one), and `mfu` of
        the update where the device's peak is known or given.
    """
    shape, on_gpu = SHAPES[name], torch.cuda.is_available()
    policy = Policy(random_model(shape))
    policy.to("cuda" if on_gpu else "cpu", torch.bfloat16 if on_gpu else torch.float32)
    engine = HFEngine(copy.deepcopy(policy.model))
    optimizer = adamw(policy, weight_decay=0.0)
    set_learning_rate(optimizer, 1e-6)
    updater = Updater(policy, CRFNTF(CRFNTFConfig()), optimizer, config=TrainingConfig(), ranks=Ranks())
    for _ in range(steps - 1):
        _step(engine, updater, policy, shape)
    played, seconds = _step(engine, updater, policy, shape)
    engine.close()
    lengths = [len(one.turns[-1].prompt_ids) + len(one.turns[-1].action_ids) for one in played]
    num_actions = sum(len(turn.action_ids) for one in played for turn in one.turns)
    num_parameters = policy.model.num_parameters()
    flops = update_flops(num_parameters, shape.layers, shape.hidden, lengths)
    found = {
        "rollout_action_tokens_per_s": num_actions / seconds["rollout_s"],
        "rollout_tokens_per_s": sum(lengths) / seconds["rollout_s"],
        "update_tokens_per_s": sum(lengths) / seconds["update_s"],
        "rollout_frac": seconds["rollout_s"] / sum(seconds.values()),
        "update_tflops": flops / seconds["update_s"] / 1e12,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0,
        "parameters": num_parameters,
        "tokens": sum(lengths),
    }
    peak = peak_tflops or known_peak(torch.cuda.get_device_name() if on_gpu else "")
    return found | ({"mfu": found["update_tflops"] / peak} if peak else {}) | seconds


def _step(
    engine: HFEngine, updater: Updater, policy: Policy, shape: Shape
) -> tuple[list[Trajectory], dict[str, float]]:
    """Plays and learns; gives the episodes and the seconds of each part."""
    times = [_now(policy.device)]
    played = asyncio.run(_play_all(engine, shape))
    batch = make_batch(played).to(policy.device)
    times.append(_now(policy.device))
    annotated = updater.annotate(batch)
    times.append(_now(policy.device))
    updater.update(annotated, seed=0)
    times.append(_now(policy.device))
    engine.load_weights(policy.weights(), version=1)
    times.append(_now(policy.device))
    names = ("rollout_s", "annotate_s", "update_s", "load_weights_s")
    return played, {name: after - before for name, before, after in zip(names, times, times[1:], strict=False)}


def random_model(shape: Shape) -> Qwen2ForCausalLM:
    """Gives the model, the same weights each time."""
    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            tie_word_embeddings=True,
        )
    )


def update_flops(num_parameters: int, layers: int, hidden: int, lengths: Sequence[int]) -> float:
    """Gives the floating-point operations of forward and backward through rows of these lengths.

    6 for each parameter and token, and 6 layers hidden n² for causal attention over n tokens: two products of 2 hidden
    n²/2 forward, twice that backward (the count of PaLM, arXiv:2204.02311, appendix B, with half for the causal mask).
    """
    return float(sum(6 * num_parameters * n + 6 * layers * hidden * n * n for n in lengths))


def known_peak(device_name: str) -> float | None:
    """Gives the peak of a device in TFLOP/s, None for one that is not in the list."""
    return next((peak for part, peak in PEAK_TFLOPS.items() if part in device_name), None)


async def _play_all(engine: HFEngine, shape: Shape) -> list[Trajectory]:
    return list(await asyncio.gather(*(_play(engine, shape, number) for number in range(shape.episodes))))


async def _play(engine: HFEngine, shape: Shape, number: int) -> Trajectory:
    """Gives a conversation in which half of the episodes have as many turns as the others have twice."""
    rng = np.random.default_rng(number)
    params = SamplingParams(temperature=1.0, max_tokens=shape.action_tokens, stop_ids=frozenset())
    ids: tuple[int, ...] = ()
    turns: list[Turn] = []
    num_turns = shape.turns if number % 2 else (shape.turns + 1) // 2
    for turn in range(num_turns):
        ids += tuple(rng.integers(shape.vocabulary, size=shape.observation_tokens).tolist())
        made = await engine.generate(ids, params, seed=number * 1000 + turn)
        reward = float(turn == num_turns - 1 and number % 3 == 0)
        turns.append(Turn(ids, made.ids, made.logprobs, observation="", action="", reward=reward))
        ids += made.ids
    return Trajectory("bench", str(number), number, number // 8, tuple(turns), Ending.TERMINATED)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
