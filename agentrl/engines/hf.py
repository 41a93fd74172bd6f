"""Sampling with a Hugging Face model in this process: whoever waits joins at the next token.

Letters: R requests, V vocabulary.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from agentrl.config.engine import EngineConfig
from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines._residents import Residents
from agentrl.engines._slots import ATTENTION, SlotCache, check_model, layout, read

_BLOCK = 256
"""Tokens; of the order of the root of a vocabulary."""


@dataclass(eq=False)
class _Request:
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    seed: int
    answer: "asyncio.Future[Completion]"
    num_read: int = 0
    """Leading tokens whose keys and values are in its slot."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    @property
    def unread(self) -> Sequence[int]:
        """The tokens that the model has still to read."""
        return self.ids[-1:] if self.ids else self.prompt_ids[self.num_read :]

    def takes(self, token: int, logprob: float) -> bool:
        """Appends a sampled token and tells whether it was the last."""
        self.num_read = len(self.prompt_ids) + len(self.ids)
        self.ids.append(token)
        self.logprobs.append(logprob)
        return token in self.params.stop_ids or len(self.ids) == self.params.max_tokens

    def completion(self, version: int) -> Completion:
        """Gives what was sampled."""
        stopped = "stop" if self.ids[-1] in self.params.stop_ids else "length"
        return Completion(tuple(self.ids), tuple(self.logprobs), stopped, version)


class HFEngine:
    """Samples a token of every request in work, then lets the event loop run, and takes in who has come.

    At most `max_requests` are in work at a time, and about `step_tokens` prompt tokens are read between two tokens of
    the others. It owns `model`: pass a copy of what is being trained. Keys and values of conversations are kept, up to
    `cache_tokens` tokens, so that their next turn costs only its new tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        max_requests: int = 256,
        cache_tokens: int = 200_000,
        step_tokens: int = 16_384,
    ) -> None:
        self._model = model.requires_grad_(False).eval()
        self._model.set_attn_implementation(ATTENTION)
        self._max_requests = max_requests
        self._cache_tokens = cache_tokens
        self._step_tokens = step_tokens
        self._waiting: deque[_Request] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None  # None: nothing in work
        self._version = 0
        self._cache = SlotCache()
        self._residents: Residents[_Request] = Residents(self._cache.swap)

    @classmethod
    def start(cls, model: PreTrainedModel, settings: EngineConfig) -> "HFEngine":
        """Gives an engine with a copy of the model.

        Raises:
            ConfigError: the model remembers otherwise than by keys and values, or not so long a context.
        """
        own = copy.deepcopy(model)
        engine = cls(own.to(getattr(torch, settings.dtype)) if settings.dtype else own)
        check_model(own, settings.context_tokens)
        return engine

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives a continuation, sampled together with whatever else is asked for meanwhile."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                self._stop()  # whoever waited in a loop that was left can no longer be answered
            self._loop = loop
            # Runs after every coroutine that is ready now has made its request.
            loop.call_soon(self._step, loop)
        request = _Request(tuple(prompt_ids), params, seed, loop.create_future())
        self._waiting.append(request)
        return await request.answer

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Copies the weights in and forgets what the old ones made; turns in work start again."""
        own = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, value in weights:
                own[name].copy_(value)
        self._forget()
        self._version = version

    @torch.inference_mode()
    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Gives the log-probability at temperature 1 of each id after the first."""
        read = torch.tensor([ids], device=self._model.device)
        logprobs = torch.log_softmax(self._model(input_ids=read, use_cache=False).logits[0, :-1].float(), dim=-1)
        return tuple(logprobs.gather(-1, read[0, 1:, None])[:, 0].tolist())

    def sleep(self) -> None:
        """Forgets keys and values, which the next weights would make useless, and frees their memory."""
        self._forget()
        self._cache.reserve(0, 0)

    def close(self) -> None:
        """Fails whoever still waits."""
        for request in (*self._waiting, *self._residents.requests()):
            request.answer.cancel()
        self._stop()
        self._cache.reserve(0, 0)

    def _step(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            return
        try:
            self._take_in()
            if self._residents.num_requests:
                self._sample()
        except Exception as error:  # every waiting coroutine must hear of it, or it waits for ever
            for request in (*self._residents.requests(), *self._waiting):
                if not request.answer.done():
                    request.answer.set_exception(error)
            self._stop()
        if self._waiting or self._residents.num_requests:
            # After the coroutines that have their answers now: their next turns join at the next token.
            loop.call_soon(self._step, loop)
        else:
            self._loop = None

    def _take_in(self) -> None:
        """Gives waiting requests their slots."""
        num_tokens = 0
        while self._waiting and self._residents.num_requests < self._max_requests and num_tokens < self._step_tokens:
            request = self._waiting.popleft()
            if not request.answer.cancelled():
                kept = self._residents.find(request.prompt_ids)
                request.num_read = len(kept.ids) if kept else 0
                self._residents.enter(request, kept, limit=self._limit)
                num_tokens += len(request.unread)

    @torch.inference_mode()
    def _sample(self) -> None:
        """Reads what is new in all requests in work and draws a token for each."""
        rows, unread = self._make_room()
        device, dtype = self._model.device, self._model.dtype
        plan = layout(
            [row.num_read for row in rows],
            [len(ids) for ids in unread],
            room=self._cache.room,
            dtype=dtype,
            device=device,
        )
        logits = read(self._model, [token for ids in unread for token in ids], cache=self._cache, plan=plan)
        temperature = torch.tensor([[row.params.temperature] for row in rows])
        top_p = torch.tensor([[row.params.top_p] for row in rows], dtype=torch.float64)
        uniforms = _uniforms([row.seed for row in rows], [len(row.ids) for row in rows])
        drawn = _draw(logits.float(), temperature, torch.from_numpy(uniforms), top_p)
        ids, logprobs = (values.tolist() for values in drawn)
        for slot, (row, token, logprob) in enumerate(zip(rows, ids, logprobs, strict=True)):
            if row.takes(token, logprob) or row.answer.cancelled():
                # The last sampled token has not been read.
                self._residents.leave(slot, (*row.prompt_ids, *row.ids[:-1]), limit=self._limit)
                if not row.answer.cancelled():
                    row.answer.set_result(row.completion(self._version))

    def _make_room(self) -> tuple[Sequence[_Request], list[Sequence[int]]]:
        """Has a slot for every request, in front, with room for its new tokens; gives requests and new tokens."""
        if len(self._residents) > self._cache.num_slots:
            num_slots = max(len(self._residents), min(2 * self._cache.num_slots, self._limit))
            self._cache.reserve(num_slots, self._cache.room)
        rows = self._residents.in_front()
        unread = [row.unread for row in rows]
        needed = max(row.num_read + len(ids) for row, ids in zip(rows, unread, strict=True))
        if needed > self._cache.room:
            room = max(needed, self._cache.room * 3 // 2) + 63 & ~63
            num_slots = max(len(rows), min(self._cache.num_slots, self._cache_tokens // room))
            self._residents.trim(num_slots)
            self._cache.reserve(num_slots, room)
        return rows, unread

    @property
    def _limit(self) -> int:
        return self._cache_tokens // max(self._cache.room, 1)

    def _forget(self) -> None:
        """Empties all slots; turns in work start again."""
        in_work = self._residents.clear()
        self._waiting.extendleft(
            _Request(one.prompt_ids, one.params, one.seed, one.answer) for one in reversed(in_work)
        )

    def _stop(self) -> None:
        self._waiting.clear()
        self._residents.clear()
        self._loop = None


def _draw(
    logits: Float[Tensor, "R V"],
    temperature: Float[Tensor, "R 1"],
    uniforms: Float[Tensor, " R"],
    top_p: Float[Tensor, "R 1"] | None = None,
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """Gives a token per row by inverting the cumulative distribution at `uniforms`, and its log-probability.

    Temperatures, uniforms and top_p are in main memory, so that looking at them does not wait for the device.
    """
    greedy = temperature[:, 0] == 0
    scale = torch.where(temperature == 0, 1.0, temperature).to(logits.device)
    logprobs = torch.log_softmax(logits / scale, dim=-1)
    if top_p is not None and bool((top_p < 1).any()):
        logprobs = _nucleus(logprobs, torch.where(temperature == 0, 1.0, top_p).to(logits.device))
    ids = _inverted(logprobs.exp(), uniforms.to(logits.device)[:, None])
    if greedy.any():
        ids = torch.where(greedy.to(logits.device), logprobs.argmax(-1), ids)
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


def _inverted(probabilities: Float[Tensor, "R V"], uniforms: Float[Tensor, "R 1"]) -> Int[Tensor, " R"]:
    """Gives, for each row, the first token up to which a share `uniforms` of the probability is passed.

    In two steps, blocks of tokens and the tokens of one: sums over a large vocabulary in float64 are slow.
    """
    blocks = torch.nn.functional.pad(probabilities, (0, -probabilities.shape[1] % _BLOCK)).unflatten(1, (-1, _BLOCK))
    sums = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    target = uniforms * sums[:, -1:]
    block = torch.minimum(torch.searchsorted(sums, target, right=True), (sums < sums[:, -1:]).sum(-1, keepdim=True))
    before = torch.where(block > 0, sums.gather(-1, (block - 1).clamp(min=0)), 0.0)
    inside = before + torch.take_along_dim(blocks, block[..., None], dim=1)[:, 0].double().cumsum(-1)
    # The sums round differently: a target at the very end of a block may be beyond its tokens.
    last = (inside < inside[:, -1:]).sum(-1, keepdim=True)  # what follows has no probability
    place = torch.minimum(torch.searchsorted(inside, target, right=True), last)
    return (block * _BLOCK + place)[:, 0].clamp(max=probabilities.shape[1] - 1)


def _uniforms(seeds: Sequence[int], drawn: Sequence[int]) -> np.ndarray:
    """Gives a number in [0, 1) for each request's next token: a hash of its seed and its token count (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = np.array(seeds, dtype=np.uint64) + np.array(drawn, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) / 2**53
