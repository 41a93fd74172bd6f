"""Sampling with a Hugging Face model in this process: whoever waits is sampled together.

Letters: R requests, P prompt tokens (left-padded), V vocabulary.
"""

import asyncio
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from agentrl.config.engine import EngineConfig
from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines._prefixes import PrefixCache, join, split


@dataclass
class _Request:
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    seed: int
    answer: "asyncio.Future[Completion]"
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def takes(self, token: int, logprob: float) -> bool:
        """Appends a sampled token and tells whether it was the last."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        return token in self.params.stop_ids or len(self.ids) == self.params.max_tokens


class HFEngine:
    """Batches all requests of one round of the event loop, at most `max_requests` at a time.

    It owns `model`: pass a copy of what is being trained. Keys and values of finished requests are kept, up to
    `cache_tokens` tokens, so the next turn of a conversation costs only its new tokens.
    """

    def __init__(self, model: PreTrainedModel, *, max_requests: int = 256, cache_tokens: int = 200_000) -> None:
        self._model = model.requires_grad_(False).eval()
        self._max_requests = max_requests
        self._prefixes = PrefixCache(cache_tokens)
        self._waiting: list[_Request] = []
        self._version = 0

    @classmethod
    def start(cls, model: PreTrainedModel, settings: EngineConfig) -> "HFEngine":
        """Gives an engine with a copy of the model."""
        own = copy.deepcopy(model)
        return cls(own.to(getattr(torch, settings.dtype)) if settings.dtype else own)

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives a continuation, sampled together with every request that is made in the same round."""
        loop = asyncio.get_running_loop()
        request = _Request(tuple(prompt_ids), params, seed, loop.create_future())
        self._waiting.append(request)
        if len(self._waiting) == 1:
            # Runs after every coroutine that is ready now has made its request.
            loop.call_soon(self._answer_waiting)
        return await request.answer

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Copies the weights in and forgets the keys and values that the old ones made."""
        own = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, value in weights:
                own[name].copy_(value)
        self._prefixes.clear()
        self._version = version

    @torch.inference_mode()
    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Gives the log-probability at temperature 1 of each id after the first."""
        read = torch.tensor([ids], device=self._model.device)
        logprobs = torch.log_softmax(self._model(input_ids=read, use_cache=False).logits[0, :-1].float(), dim=-1)
        return tuple(logprobs.gather(-1, read[0, 1:, None])[:, 0].tolist())

    def sleep(self) -> None:
        """Forgets keys and values, which the next weights would make useless."""
        self._prefixes.clear()

    def close(self) -> None:
        """Fails whoever still waits."""
        for request in self._waiting:
            request.answer.cancel()
        self._waiting.clear()
        self._prefixes.clear()

    def _answer_waiting(self) -> None:
        requests, self._waiting = [one for one in self._waiting if not one.answer.cancelled()], []
        for start in range(0, len(requests), self._max_requests):
            chunk = requests[start : start + self._max_requests]
            try:
                self._sample(chunk)
            except Exception as error:  # every waiting coroutine must hear of it, or it waits for ever
                for request in chunk:
                    request.answer.set_exception(error)
                continue
            for request in chunk:
                stopped = "stop" if request.ids[-1] in request.params.stop_ids else "length"
                completion = Completion(tuple(request.ids), tuple(request.logprobs), stopped, self._version)
                request.answer.set_result(completion)

    @torch.inference_mode()
    def _sample(self, requests: list[_Request]) -> None:
        device = self._model.device
        known = [self._prefixes.take(request.prompt_ids) for request in requests]
        fresh = [request.prompt_ids[len(prefix) :] for request, prefix in zip(requests, known, strict=True)]
        input_ids, fresh_mask = _left_padded(fresh)
        longest = max(request.params.max_tokens for request in requests)
        cache, known_mask = join(known, self._model.config, room=input_ids.shape[1] + longest)
        mask = torch.cat([known_mask, fresh_mask], dim=1).to(device)
        input_ids = input_ids.to(device)
        positions = (mask.long().cumsum(1) - 1).clamp(min=0)[:, -input_ids.shape[1] :]
        temperature = torch.tensor([[request.params.temperature] for request in requests], device=device)
        top_p = torch.tensor([[request.params.top_p] for request in requests], device=device, dtype=torch.float64)
        rows: list[_Request | None] = list(requests)  # None has its answer and only keeps its place
        for drawn in range(longest):
            output = self._model(
                input_ids=input_ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
            )
            seeds = [request.seed if request else 0 for request in rows]
            uniforms = torch.from_numpy(_uniforms(seeds, drawn)).to(device)
            ids, logprobs = _draw(output.logits[:, -1].float(), temperature, uniforms, top_p)
            ended = {
                row: request
                for row, (request, token, logprob) in enumerate(zip(rows, ids.tolist(), logprobs.tolist(), strict=True))
                if request and request.takes(token, logprob)
            }
            if ended:
                # The last sampled token has not been read, so its key is not in the cache.
                read = [(*request.prompt_ids, *request.ids[:-1]) for request in ended.values()]
                self._prefixes.put(split(cache, mask, list(ended), read))
                rows = [None if row in ended else request for row, request in enumerate(rows)]
            going = [row for row, request in enumerate(rows) if request]
            if not going:
                return
            if 2 * len(going) <= len(rows):
                chosen = torch.tensor(going, device=device)
                cache.batch_select_indices(chosen)
                rows = [rows[row] for row in going]
                ids, mask, positions = ids[chosen], mask[chosen], positions[chosen]
                temperature, top_p = temperature[chosen], top_p[chosen]
            input_ids, positions = ids[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)


def _left_padded(prompts: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "R P"], Bool[Tensor, "R P"]]:
    width = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), width, dtype=torch.int64)
    mask = torch.zeros(len(prompts), width, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = True
    return ids, mask


def _draw(
    logits: Float[Tensor, "R V"],
    temperature: Float[Tensor, "R 1"],
    uniforms: Float[Tensor, " R"],
    top_p: Float[Tensor, "R 1"] | None = None,
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """Gives a token per row by inverting the cumulative distribution at `uniforms`, and its log-probability."""
    greedy = temperature[:, 0] == 0
    logprobs = torch.log_softmax(logits / torch.where(temperature == 0, 1.0, temperature), dim=-1)
    if top_p is not None and bool((top_p < 1).any()):
        logprobs = _nucleus(logprobs, torch.where(temperature == 0, 1.0, top_p))
    cumulative = logprobs.double().exp().cumsum(-1)
    sampled = torch.searchsorted(cumulative, (uniforms * cumulative[:, -1])[:, None], right=True)[:, 0]
    # Rounding may carry the last of the numbers past the end.
    last = (cumulative < cumulative[:, -1:]).sum(-1)
    ids = torch.where(greedy, logprobs.argmax(-1), torch.minimum(sampled, last))
    return ids, logprobs.gather(-1, ids[:, None])[:, 0]


def _nucleus(logprobs: Float[Tensor, "R V"], top_p: Float[Tensor, "R 1"]) -> Float[Tensor, "R V"]:
    """Gives log-probabilities among the fewest tokens whose probabilities reach `top_p`; of the others, -inf.

    Of equally probable tokens, the lower id counts first. Nothing changes where `top_p` is 1 (Holtzman et al. 2020).
    """
    ordered, order = logprobs.double().exp().sort(dim=-1, descending=True, stable=True)
    kept_in_order = (ordered.cumsum(-1) - ordered < top_p) | (top_p >= 1)
    kept = torch.zeros_like(kept_in_order).scatter(-1, order, kept_in_order)
    total = torch.where(kept_in_order, ordered, 0.0).sum(-1, keepdim=True)
    among = (logprobs.double() - total.log()).to(logprobs.dtype)
    return torch.where(top_p >= 1, logprobs, torch.where(kept, among, -torch.inf))


def _uniforms(seeds: Sequence[int], drawn: int) -> np.ndarray:
    """Gives a number in [0, 1) for each request's next token: a hash of its seed and its token count (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = np.array(seeds, dtype=np.uint64) + np.uint64(drawn + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) / 2**53
