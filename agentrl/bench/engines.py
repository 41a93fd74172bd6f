"""vLLM's engine against Hugging Face's: the same weights, requests and seeds, in one process, in turn.

Seconds are the clock's where there is a GPU, and otherwise the CPU's, which other work on the machine changes little.

Letters: R requests that are made together, T turns of a conversation.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from agentrl.config.engine import EngineConfig
from agentrl.engines import _vllm_install
from agentrl.engines._base import Completion, RolloutEngine, SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.policy import Policy
from agentrl.training.weight_sync import WeightSync

PROMPT_TOKENS, ACTION_TOKENS = 64, 32
REQUESTS = (1, 16, 64)
CONVERSATIONS, TURNS, OBSERVATION_TOKENS = 16, 6, 32
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Row:
    """What one engine did."""

    engine: str
    one_tokens_per_s: float
    """Action tokens a second, one request at a time."""
    some_tokens_per_s: float
    """With 16 requests at a time."""
    many_tokens_per_s: float
    """With 64."""
    turns_tokens_per_s: float
    """In 16 conversations of 6 turns, which come back when they have been answered, as episodes do."""
    mismatch_nats: float
    """The largest difference to the trainer's log-probability of a sampled token, after an update and a sync."""
    sync_s_per_gb: float
    """Seconds of handing over 10^9 bytes of weights."""
    sync_s: float
    """Seconds of a whole sync: handing over, and the canary."""


def measure_engines(policy: Policy, *, repeats: int = 3) -> list[Row]:
    """Gives a row for each engine that is installed; speeds are the best of `repeats` measurements in turn."""
    context = PROMPT_TOKENS + TURNS * (ACTION_TOKENS + OBSERVATION_TOKENS)
    settings = EngineConfig(context_tokens=context, max_tokens=ACTION_TOKENS)
    engines: dict[str, RolloutEngine] = {"hf": HFEngine.start(policy.model, settings)}
    if _vllm_install.version():
        from agentrl.engines.vllm import VLLMEngine

        engines["vllm"] = VLLMEngine.start(policy.model, settings.model_copy(update={"name": "vllm"}))
    vocabulary: Any = policy.model.get_input_embeddings()
    size = vocabulary.weight.shape[0]
    for engine in engines.values():
        _speed(engine, size, 1, 0)  # warms up
    speeds: dict[str, list[list[float]]] = {name: [] for name in engines}
    for repeat in range(repeats):
        for name, engine in engines.items():
            found = [_speed(engine, size, num, repeat) for num in REQUESTS] + [_speed_of_turns(engine, size, repeat)]
            speeds[name].append(found)
    syncs = {name: WeightSync.of(engine, policy, settings) for name, engine in engines.items()}
    for sync in syncs.values():
        sync(0)
    _learn(policy)
    return [_row(name, engine, syncs[name], policy, size, speeds[name]) for name, engine in engines.items()]


def _row(
    name: str, engine: RolloutEngine, sync: WeightSync, policy: Policy, size: int, speeds: list[list[float]]
) -> Row:
    num_bytes = sum(value.numel() * value.element_size() for _, value in policy.weights())
    sync_s = _duration(lambda: sync(1))
    load_s = _duration(lambda: engine.load_weights(policy.weights(), version=1))
    prompts = _prompts(16, size, seed=99)
    answers = asyncio.run(_ask(engine, prompts, seed=99))
    mismatch = max(_mismatch(policy, ids, answer) for ids, answer in zip(prompts, answers, strict=True))
    one, some, many, turns = map(max, zip(*speeds, strict=True))
    return Row(name, one, some, many, turns, mismatch, load_s / num_bytes * 1e9, sync_s)


def _speed(engine: RolloutEngine, size: int, num: int, seed: int) -> float:
    """Gives action tokens a second of `num` requests at once."""
    prompts = _prompts(num, size, seed=seed)
    return num * ACTION_TOKENS / _duration(lambda: asyncio.run(_ask(engine, prompts, seed=seed)))


def _speed_of_turns(engine: RolloutEngine, size: int, seed: int) -> float:
    """Gives action tokens a second of conversations, each at its own pace."""
    draw = random.Random(seed)
    prompts = _prompts(CONVERSATIONS, size, seed=seed)
    lengths = [[draw.randint(ACTION_TOKENS // 4, ACTION_TOKENS) for _ in range(TURNS)] for _ in prompts]
    observations = [_prompts(TURNS, size, seed=seed + i + 1, length=OBSERVATION_TOKENS) for i in range(CONVERSATIONS)]

    async def converse(number: int) -> None:
        ids = prompts[number]
        for turn in range(TURNS):
            params = _params(lengths[number][turn])
            completion = await engine.generate(ids, params, seed=seed + 100 * number + turn)
            ids = [*ids, *completion.ids, *observations[number][turn]]

    async def everyone() -> None:
        await asyncio.gather(*(converse(number) for number in range(CONVERSATIONS)))

    return sum(map(sum, lengths)) / _duration(lambda: asyncio.run(everyone()))


def _duration(call: Callable[[], Any]) -> float:
    seconds = time.perf_counter if torch.cuda.is_available() else time.process_time
    start = seconds()
    call()
    return seconds() - start


async def _ask(engine: RolloutEngine, prompts: Sequence[list[int]], *, seed: int) -> list[Completion]:
    params = _params(ACTION_TOKENS)
    return list(await asyncio.gather(*(engine.generate(ids, params, seed=seed + i) for i, ids in enumerate(prompts))))


def _params(max_tokens: int) -> SamplingParams:
    return SamplingParams(temperature=1.0, max_tokens=max_tokens, stop_ids=frozenset())


def _prompts(num: int, size: int, *, seed: int, length: int = PROMPT_TOKENS) -> list[list[int]]:
    draw = random.Random(seed)
    return [[draw.randrange(size) for _ in range(length)] for _ in range(num)]


def _learn(policy: Policy) -> None:
    """Takes one step of AdamW, so that a sync has something to bring."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE)
    vocabulary: Any = policy.model.get_input_embeddings()
    ids = torch.tensor(_prompts(4, vocabulary.weight.shape[0], seed=7), device=policy.device)
    policy.model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    policy.zero_grad()


@torch.no_grad()
def _mismatch(policy: Policy, prompt: list[int], answer: Completion) -> float:
    """Gives the largest difference, in nats, to the trainer's log-probability of a sampled token."""
    ids = torch.tensor([[*prompt, *answer.ids]], device=policy.device)
    logprobs = torch.log_softmax(
        policy.model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float(), -1
    )
    own = logprobs.gather(-1, ids[0, len(prompt) :, None])[:, 0].cpu()
    return (own - torch.tensor(answer.logprobs)).abs().max().item()
