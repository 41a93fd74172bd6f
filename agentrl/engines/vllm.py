"""Sampling with vLLM, in this process or on a server: requests join the running batch whenever they come.

In this process there is one copy of vLLM's engine and no other process: it is stepped, a token of every request at a
time, in a thread of its own, while the event loop goes on taking requests, which join between two tokens. New weights
are put straight into its model.

The seed of a request decides its tokens given its probabilities. Those depend on the rest of the batch by rounding
(some 1e-6 nats in float32), so that a token at the very edge between two may, rarely, fall to the other.
"""

import asyncio
import itertools
import logging
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from agentrl.config.engine import EngineConfig
from agentrl.engines import _vllm_install
from agentrl.engines._base import Completion, RolloutEngine, SamplingParams
from agentrl.engines._vllm_settings import engine_arguments, refusals, sampling_arguments

if TYPE_CHECKING:
    from vllm.v1.engine.llm_engine import LLMEngine

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class _Request:
    id: str
    prompt_ids: list[int]
    sampling: dict[str, Any]
    answer: "asyncio.Future[Any]"


class VLLMEngine:
    """vLLM in this process, with the weights of `model` in memory of its own."""

    def __init__(self, model: PreTrainedModel, settings: EngineConfig) -> None:
        self._vllm = _vllm_install.require()
        self._dtype = getattr(torch, settings.dtype) if settings.dtype else model.dtype
        self._sleeps = settings.sleep and model.device.type == "cuda"
        if settings.sleep and not self._sleeps:
            log.warning("engine.sleep: no effect, vLLM cannot sleep on a CPU; leave it out")
        # One thread, always the same: CUDA's current device and OpenMP's threads belong to a thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vllm")
        self._calls = 0
        self._engine: LLMEngine = self._call(lambda: _start(model, settings, sleeps=self._sleeps))
        self._numbers = itertools.count()
        self._arrived: list[_Request] = []
        self._asked: dict[str, _Request] = {}
        self._finished: list[tuple[str, Any]] = []
        self._driver: asyncio.Task[None] | None = None
        self._version = 0
        self.load_weights(model.named_parameters(), version=0)

    @classmethod
    def start(cls, model: PreTrainedModel, settings: EngineConfig) -> RolloutEngine:
        """Gives an engine with the model's weights: here, or on the server that is named.

        Raises:
            MissingExtra: vLLM is not installed.
            ConfigError: vLLM refuses the settings or the model.
            AgentRLError: the server does not answer.
        """
        if settings.url is None:
            return cls(model, settings)
        _vllm_install.require()
        from agentrl.engines._vllm_server import ServerEngine

        engine = ServerEngine(settings.url, dtype=settings.dtype, device=model.device)
        engine.load_weights(model.named_parameters(), version=0)
        return engine

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives a continuation; joins whatever is being sampled."""
        version = self._version
        output = await self._ask(prompt_ids, sampling_arguments(params, seed))
        ids = tuple(output.outputs[0].token_ids)
        logprobs = tuple(found[id].logprob for id, found in zip(ids, output.outputs[0].logprobs, strict=True))
        stopped = "stop" if ids[-1] in params.stop_ids else "length"
        return Completion(ids, logprobs, stopped, version)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Copies the weights in, and forgets the keys and values that the old ones made.

        What is being sampled goes on with them, and carries the version it began with.
        """
        self._call(lambda: self._load([(name, value.detach()) for name, value in weights]))
        self._version = version

    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Gives the log-probability at temperature 1 of each id after the first; never from remembered keys."""
        output = self._call(lambda: self._read(list(ids)))
        return tuple(found[id].logprob for id, found in zip(ids[1:], output.prompt_logprobs[1:], strict=True))

    def sleep(self) -> None:
        """Gives up the GPU memory of weights, keys and values until `load_weights`, where engine.sleep is set."""
        if self._sleeps:
            self._call(lambda: self._engine.sleep(2))

    def close(self) -> None:
        """Fails whoever still waits and frees vLLM's memory."""
        for request in (*self._arrived, *self._asked.values()):
            request.answer.cancel()
        self._arrived.clear()
        self._call(self._engine.engine_core.shutdown)
        self._thread.shutdown()

    def _call(self, do: Callable[[], T]) -> T:
        """Does something in vLLM's thread, between two tokens."""
        self._calls += 1
        try:
            return self._thread.submit(do).result()
        finally:
            self._calls -= 1

    def _load(self, weights: list[tuple[str, Tensor]]) -> None:
        from agentrl.engines import _vllm_worker

        if self._sleeps:
            self._engine.wake_up(["weights"])
        if weights:
            cast = ((name, value.to(self._dtype)) for name, value in weights)
            self._engine.collective_rpc(_vllm_worker.load, args=(cast,))
        if self._sleeps:
            self._engine.wake_up(["kv_cache"])
        forgot = self._engine.reset_prefix_cache(reset_running_requests=True)
        assert forgot, "vLLM keeps keys and values of old weights"

    async def _ask(self, prompt_ids: Sequence[int], sampling: dict[str, Any]) -> Any:
        """Gives vLLM's output for a request."""
        answer = asyncio.get_running_loop().create_future()
        self._arrived.append(_Request(str(next(self._numbers)), list(prompt_ids), sampling, answer))
        if self._driver is None or self._driver.done():
            self._driver = asyncio.ensure_future(self._drive())
        return await answer

    async def _drive(self) -> None:
        """Steps vLLM until every request has its answer."""
        loop = asyncio.get_running_loop()
        try:
            while self._arrived or self._asked:
                arrived, self._arrived = self._arrived, []
                self._asked |= {request.id: request for request in arrived}
                left = [id for id, request in self._asked.items() if request.answer.cancelled()]
                found = await loop.run_in_executor(self._thread, self._step, arrived, left)
                for id in left:
                    self._asked.pop(id)
                for id, answer in found:
                    request = self._asked.pop(id, None)
                    if request is None or request.answer.cancelled():  # whoever asked has left, or its loop has ended
                        continue
                    if isinstance(answer, Exception):
                        request.answer.set_exception(answer)
                    else:
                        request.answer.set_result(answer)
        except Exception as error:  # every waiting coroutine must hear of it, or it waits for ever
            for request in (*self._arrived, *self._asked.values()):
                if not request.answer.done():
                    request.answer.set_exception(error)
            self._arrived.clear()
            self._asked.clear()

    def _step(self, arrived: list[_Request], left: list[str]) -> list[tuple[str, Any]]:
        """Hands requests over, takes some back, and samples until there is an answer or a new request.

        Gives the answers with their requests' ids; that of a request that vLLM refuses is its exception.
        """
        answers, self._finished = self._finished, []
        for request in arrived:
            try:
                self._add(request.id, request.prompt_ids, request.sampling)
            except (ValueError, self._vllm.exceptions.VLLMClientError) as error:
                answers.append((request.id, error))
        self._engine.abort_request(left)
        # Going back to the event loop for every token would cost a small model half its speed.
        while not (answers or self._arrived or self._calls) and self._engine.has_unfinished_requests():
            answers = [(output.request_id, output) for output in self._engine.step()]
        return answers

    def _read(self, ids: list[int]) -> Any:
        """Gives vLLM's output for a prompt with its log-probabilities; what else gets ready is kept for `_step`."""
        self._add("read", ids, {"temperature": 1.0, "max_tokens": 1, "prompt_logprobs": 0})
        while True:
            outputs = {output.request_id: output for output in self._engine.step()}
            found = outputs.pop("read", None)
            self._finished += outputs.items()
            if found is not None:
                return found

    def _add(self, id: str, prompt_ids: list[int], sampling: dict[str, Any]) -> None:
        prompt = self._vllm.inputs.TokensPrompt(prompt_token_ids=prompt_ids)
        kind = self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY
        params = self._vllm.SamplingParams(**sampling, detokenize=False, output_kind=kind)
        self._engine.add_request(id, prompt, params)


def _start(model: PreTrainedModel, settings: EngineConfig, *, sleeps: bool) -> "LLMEngine":
    """Gives vLLM's engine with the model's shape and no weights yet."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    dtype = str(model.dtype).removeprefix("torch.")
    arguments = engine_arguments(model.config, settings, dtype=dtype, device=model.device)
    # The class, as the name "uni" means processes on a CPU unless an environment variable says otherwise.
    here = {"load_format": "dummy", "distributed_executor_backend": UniProcExecutor, "enable_sleep_mode": sleeps}
    # vLLM seeds the process's random numbers, which are not its own.
    with tempfile.TemporaryDirectory() as folder, refusals(), torch.random.fork_rng():
        model.config.save_pretrained(folder)
        config = EngineArgs(model=folder, **here, **arguments).create_engine_config()
        return LLMEngine(config, UniProcExecutor, log_stats=False, multiprocess_mode=False)
