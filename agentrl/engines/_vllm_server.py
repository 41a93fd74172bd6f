"""Sampling on a vLLM server that `agentrl serve` has started: token ids in and out, weights over the network.

Weights are broadcast from this process, rank 0, to the server's workers: by NCCL between GPUs, by gloo between CPUs.
Each version is told to the server, which says for every token which version sampled it.
"""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal
from urllib.parse import urlsplit

import torch
from torch import Tensor

from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines._vllm_settings import sampling_arguments
from agentrl.engines._vllm_worker import group
from agentrl.errors import AgentRLError

MAX_REQUESTS = 1024
"""Requests that wait for the server at a time; it decides itself how many it samples together."""
TIMEOUT_S = 600.0


class ServerEngine:
    """A server at `url`, which this engine has to itself; weights travel as `dtype`, or as they are."""

    def __init__(self, url: str, *, dtype: Literal["float32", "bfloat16"] | None, device: torch.device) -> None:
        self._url = url.rstrip("/")
        self._dtype = dtype
        self._device = device
        self._threads = ThreadPoolExecutor(MAX_REQUESTS, thread_name_prefix="vllm server")
        self._group: Any = None
        self._request("health")

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives a continuation, sampled by the server together with all that it has been asked for.

        Raises:
            AgentRLError: the server refuses, is gone, or has weights that are not ours.
        """
        body = _body(prompt_ids, sampling_arguments(params, seed))
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, self._request, "inference/v1/generate", body)
        (choice,) = answer["choices"]
        ids = tuple(choice["token_ids"])
        logprobs = tuple(one["logprob"] for one in choice["logprobs"]["content"])
        stopped = "stop" if ids[-1] in params.stop_ids else "length"
        return Completion(ids, logprobs, stopped, self._oldest(choice["weight_versions"]))

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Sends the weights, and has the server forget the keys and values that the old ones made.

        What is being sampled waits meanwhile, goes on with them, and carries the version it began with.
        """
        sent = {name: self._cast(value.detach()) for name, value in weights}
        self._request("pause?mode=keep", {})
        if sent:
            self._send(sent)
        self._request("update_weight_version", {"new_version": str(version)})
        forgot = self._request("reset_prefix_cache?reset_running_requests=true", {})["success"]
        self._request("resume", {})
        if not forgot:
            raise AgentRLError(f"engine.url: {self._url} keeps keys and values of old weights; start it again")

    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Gives the log-probability at temperature 1 of each id after the first; never from remembered keys."""
        body = _body(ids, {"temperature": 1.0, "max_tokens": 1, "prompt_logprobs": 0})
        found = self._request("inference/v1/generate", body)["prompt_logprobs"][1:]
        return tuple(one[str(id)]["logprob"] for id, one in zip(ids[1:], found, strict=True))

    def sleep(self) -> None:
        """Leaves the server as it is: its memory is not the trainer's."""

    def close(self) -> None:
        """Leaves the server running."""
        self._threads.shutdown(wait=False)

    def _send(self, weights: dict[str, Tensor]) -> None:
        if self._group is None:
            self._group = self._meet()
        about = {
            "names": list(weights),
            "dtypes": [str(value.dtype).removeprefix("torch.") for value in weights.values()],
            "shapes": [list(value.shape) for value in weights.values()],
        }
        self._request("start_weight_update", {})
        received = self._threads.submit(self._request, "update_weights", {"update_info": about})
        for value in weights.values():
            self._group.broadcast(value.contiguous(), 0).wait()
        received.result()
        self._request("finish_weight_update", {})

    def _meet(self) -> Any:
        """Gives the group of this process and the server's workers."""
        server = urlsplit(self._url)
        assert server.hostname is not None, "RunConfig.check asks for it"
        with socket.create_connection((server.hostname, server.port or 80)) as known:
            host = known.getsockname()[0]  # where the server finds us
        with socket.create_server((host, 0)) as free:
            port = free.getsockname()[1]
        size = 1 + self._request("get_world_size")["world_size"]
        info = {"host": host, "port": port, "size": size}
        joined = self._threads.submit(self._request, "init_weight_transfer_engine", {"init_info": info})
        met = group(host, port, 0, size=size, device=self._device)
        joined.result()
        return met

    def _cast(self, value: Tensor) -> Tensor:
        return value.to(getattr(torch, self._dtype)) if self._dtype else value

    def _oldest(self, spans: list[dict[str, Any]]) -> int:
        """Gives the oldest version of the weights that sampled an answer."""
        versions = [span["version"] for span in spans]
        if not all(version.isdigit() for version in versions):
            problem = f"{self._url} samples with weights that this run has not sent; it may have been restarted"
            raise AgentRLError(f"engine.url: {problem}; go on with 'agentrl train --resume'")
        return min(map(int, versions))

    def _request(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Gives the server's answer to a POST of `body`, or to a GET."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            told = error.read().decode(errors="replace")[:300]
            hint = "; start it with 'agentrl serve'" if error.code in (404, 405) else ""
            raise AgentRLError(f"engine.url: {self._url}/{path} answers {error.code}: {told}{hint}") from error
        except OSError as error:
            problem = f"no server answers at {self._url} ({error})"
            raise AgentRLError(f"engine.url: {problem}; start one with 'agentrl serve', and wait for it") from error
        return json.loads(text) if text else None


def _body(prompt_ids: Sequence[int], sampling: dict[str, Any]) -> dict[str, Any]:
    return {"token_ids": list(prompt_ids), "sampling_params": {**sampling, "detokenize": False}}
