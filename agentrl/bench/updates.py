"""What updates save against plain Hugging Face passes and against waiting: time, memory, the same gradient.

Letters: B rows, T tokens, N tokens that are asked about, V vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from agentrl.batch import Batch, make_batch
from agentrl.bench.asynchrony import compare_asynchrony
from agentrl.bench.measure import least_s, peak_mib
from agentrl.bench.workloads import random_model
from agentrl.logprobs import token_logprobs
from agentrl.policy import Policy
from agentrl.training.update import micro_batches
from agentrl.trajectory import Ending, Trajectory, Turn

LOGPROB_TOKENS, CHUNK_TOKENS = 2048, 512
ROW_TOKENS = (50, 440, 830, 1220, 1610, 2000)
TURN_TOKENS, ACTION_TOKENS = 64, 16
"""Of a whole turn, and of what the policy samples of it, at its end."""
PADDED_ROWS, MICRO_BATCH_TOKENS = 2, 4096
"""Rows in a forward pass of the plain way, tokens in one of ours: both some 4,000 tokens."""
LAYERS = 6
"""Of the 30 of SmolLM2-135M, so that the comparison takes minutes."""


def smollm2_shaped(layers: int) -> PreTrainedModel:
    """Gives a model of SmolLM2-135M's shape, but for the number of its layers, with random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=layers,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def measure_updates(*, repeats: int = 2) -> list[dict[str, Any]]:
    """Gives a row for each comparison: seconds, peak MiB, and what ours is of the plain way's.

    Seconds are the least of `repeats` passes forward and backward, in turn, after one that checks the gradients.
    """
    smollm2 = smollm2_shaped(LAYERS)
    rows = [{"bench": "log-probabilities", **compare_logprobs(smollm2.get_output_embeddings(), repeats)}]
    for name, model in (("SmolLM2-135M", smollm2), ("tiny", random_model(max_tokens=max(ROW_TOKENS)))):
        rows.append(
            {"bench": f"ragged rows, {name}", **compare_ragged(model, ragged_batch(model.config.vocab_size), repeats)}
        )
    rows.append({"bench": "steps of Guess", **compare_asynchrony(repeats=repeats)})
    return rows


def compare_logprobs(head: Any, repeats: int) -> dict[str, float]:
    """Compares log-probabilities and entropies in chunks with those of the whole table."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(LOGPROB_TOKENS, head.in_features, generator=generator).requires_grad_()
    ids = torch.randint(head.out_features, (LOGPROB_TOKENS,), generator=generator)
    weights = torch.randn(LOGPROB_TOKENS, generator=generator)

    def plain() -> Tensor:
        table = head(hidden).float().log_softmax(-1)
        with torch.no_grad():
            _ = -(table.exp() * table).sum(-1)
        return table.gather(-1, ids[:, None])[:, 0]

    def ours() -> Tensor:
        return token_logprobs(hidden, head, ids=ids, temperature=1.0, chunk_tokens=CHUNK_TOKENS)[0]

    def passes(logprobs: Callable[[], Tensor]) -> list[Tensor]:
        (logprobs() * weights).sum().backward()
        return _taken([hidden, head.weight])

    calls = {"plain": lambda: passes(plain), "ours": lambda: passes(ours)}
    return _compared(calls, repeats) | _memory(calls)


def compare_ragged(model: PreTrainedModel, batch: Batch, repeats: int) -> dict[str, float]:
    """Compares three ways to read a batch: rows padded as they come, sorted and padded, packed."""
    weights = torch.where(batch.action_mask, torch.sin(torch.arange(batch.input_ids.shape[1])), 0.0)

    def passes(logprobs: Callable[[Tensor], Tensor], cut: list[Tensor]) -> list[Tensor]:
        for rows in cut:
            found = logprobs(rows)
            (found * weights[rows, : found.shape[1]]).sum().backward()
        return _taken([*model.parameters()])

    def plain(rows: Tensor) -> Tensor:
        ids, real = batch.input_ids[rows], batch.attention_mask[rows]
        logits = model(input_ids=ids, attention_mask=real.long(), use_cache=False).logits[:, :-1]
        chosen = logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        return torch.nn.functional.pad(chosen, (1, 0))

    def ours(*, packed: bool) -> list[Tensor]:
        policy = Policy(model, packed=packed)
        ordered = sorted(((int(n), row) for row, n in enumerate(batch.lengths)), reverse=True)
        cut = list(micro_batches(ordered, MICRO_BATCH_TOKENS, padded=not packed))
        return passes(lambda rows: policy(batch.select(rows))[0], cut)

    def as_they_come() -> list[Tensor]:
        model.set_attn_implementation("sdpa")
        return passes(plain, list(torch.arange(len(batch.input_ids)).split(PADDED_ROWS)))

    calls = {"plain": as_they_come, "sorted": lambda: ours(packed=False), "ours": lambda: ours(packed=True)}
    found = _compared(calls, repeats)
    return found | {"tokens_per_s_ratio": found["plain_s"] / found["ours_s"]} | _memory(calls)


def ragged_batch(num_words: int, row_tokens: Sequence[int] = ROW_TOKENS) -> Batch:
    """Gives conversations of random tokens, the long between the short, a quarter of their tokens sampled."""
    rng = np.random.default_rng(0)
    played = []
    for number, length in enumerate(rng.permutation(row_tokens).tolist()):
        ids: tuple[int, ...] = ()
        turns = []
        while len(ids) < length:
            size = min(TURN_TOKENS, length - len(ids))
            action_tokens = min(ACTION_TOKENS, max(size // 4, 1))
            prompt = (*ids, *rng.integers(num_words, size=size - action_tokens).tolist())
            action = tuple(rng.integers(num_words, size=action_tokens).tolist())
            turns.append(Turn(prompt, action, (-1.0,) * action_tokens, observation="", action=""))
            ids = prompt + action
        played.append(Trajectory("bench", str(number), number, number, tuple(turns), Ending.TERMINATED))
    return make_batch(played)


def _taken(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Gives gradients and leaves none behind, whose end would count as memory that a later pass gives back."""
    gradients = [one.grad for one in tensors if one.grad is not None]
    for one in tensors:
        one.grad = None
    return gradients


def _compared(calls: dict[str, Callable[[], list[Tensor]]], repeats: int) -> dict[str, float]:
    """Gives seconds, and the ratio of the last way to the first, whose gradients must agree."""
    gradients = [torch.cat([one.flatten() for one in call()]) for call in calls.values()]
    errors = [float((one - gradients[0]).norm() / gradients[0].norm()) for one in gradients]
    assert max(errors) < 1e-5, f"the ways do not compute the same: gradients differ by {max(errors):.2g}"
    seconds = least_s(calls, repeats)
    found = {f"{name}_s": value for name, value in seconds.items()}
    return found | {"time_ratio": seconds["ours"] / seconds["plain"], "gradient_error": errors[-1]}


def _memory(calls: dict[str, Callable[[], list[Tensor]]]) -> dict[str, float]:
    """Gives the peak of each way, and the ratio of ours to the plain one's."""
    peaks = {name: peak_mib(call) for name, call in calls.items()}
    found = {f"{name}_mib": value for name, value in peaks.items()}
    return found | {"memory_ratio": peaks["ours"] / peaks["plain"]}
