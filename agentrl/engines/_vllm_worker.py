"""What runs inside vLLM: taking new weights, in our process or in a server's.

Imports vLLM, so it is imported where vLLM is known to be there, and by a server that is told to:
--worker-extension-cls agentrl.engines._vllm_worker.Extension
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from vllm.distributed.utils import stateless_init_torch_distributed_process_group
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

BACKEND = "agentrl"
"""The name of our weight transfer in --weight-transfer-config."""


def load(worker: Any, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Puts weights into a worker's model, to be called by `collective_rpc` in the worker's own process."""
    worker.model_runner.reload_weights(weights_iterator=weights)
    repack_tied_head(worker.model_runner.get_model())


def repack_tied_head(model: torch.nn.Module) -> None:
    """Makes a head that shares the embedding's weights use the new ones.

    On CPUs vLLM multiplies by a packed copy of a layer's weights. Its reload (0.32) packs every layer anew but not the
    head that is tied to the embedding, so logits go on coming from the old weights, without a word. Elsewhere there is
    no packed copy, and nothing to do.
    """
    heads: list[Any] = [module for module in model.modules() if isinstance(module, ParallelLMHead)]
    for head in heads:
        if head.weight.device.type == "cpu" and head.weight.numel():
            head.quant_method.process_weights_after_loading(head)


def group(host: str, port: int, rank: int, *, size: int, device: torch.device) -> Any:
    """Gives the processes that weights are sent among: NCCL on GPUs, gloo on CPUs; waits until all have come.

    It is apart from torch's own groups, which belong to the trainer, or to vLLM.
    """
    backend = "nccl" if device.type == "cuda" else "gloo"
    return stateless_init_torch_distributed_process_group(host, port, rank, size, backend=backend)


@dataclass
class InitInfo(WeightTransferInitInfo):
    """Where the trainer waits, and how many processes come."""

    host: str
    port: int
    size: int


@dataclass
class UpdateInfo(WeightTransferUpdateInfo):
    """What comes, in this order."""

    names: list[str]
    dtypes: list[str]
    shapes: list[list[int]]


class Receiver(WeightTransferEngine[InitInfo, UpdateInfo]):
    """Takes weights that the trainer, rank 0 of the group, broadcasts one after another."""

    init_info_cls = InitInfo
    update_info_cls = UpdateInfo

    _group: Any = None

    def init_transfer_engine(self, init_info: InitInfo) -> None:
        """Joins the trainer's group."""
        parallel = self.parallel_config
        rank = 1 + parallel.data_parallel_rank * parallel.world_size + parallel.rank
        self._group = group(init_info.host, init_info.port, rank, size=init_info.size, device=self.device)

    def start_weight_update(self) -> None:
        """Makes room."""
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Takes the weights; vLLM's own waits for a GPU, also where there is none."""
        self.receive_weights(self.parse_update_info(update_info))
        if self.device.type != "cpu":
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: UpdateInfo) -> None:
        """Takes the weights."""
        self.model.load_weights(self._received(update_info))

    def finish_weight_update(self) -> None:
        """Brings the weights into the form that is computed with."""
        finalize_layerwise_reload(self.model, self.model_config)
        repack_tied_head(self.model)

    def shutdown(self) -> None:
        """Leaves the group."""
        self._group = None

    def _received(self, info: UpdateInfo) -> Iterator[tuple[str, Tensor]]:
        for name, dtype, shape in zip(info.names, info.dtypes, info.shapes, strict=True):
            value = torch.empty(shape, dtype=getattr(torch, dtype), device=self.device)
            self._group.broadcast(value, 0).wait()
            yield name, value


class Extension:
    """Named on a server's command line, so that its workers import this module, and with it know `Receiver`."""


if BACKEND not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine(BACKEND, Receiver)
