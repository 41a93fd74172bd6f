"""Processes that train together; the only user of accelerate.

Every rank plays its share of the episodes, sees all trajectories, and back-propagates its share of the rows. Weights
and statistics come from the whole step, so the gradient is the one that a single process would compute.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor

T = TypeVar("T")


class Ranks:
    """The group of training processes, of which this one is `rank` of `size`; a single process is a group of one."""

    def __init__(self) -> None:
        self._accelerator = Accelerator(cpu=not torch.cuda.is_available())
        self.rank: int = self._accelerator.process_index
        self.size: int = self._accelerator.num_processes

    @property
    def device(self) -> torch.device:
        """Where this rank's model lives."""
        return self._accelerator.device

    @property
    def is_main(self) -> bool:
        """Whether this rank writes files and logs."""
        return self.rank == 0

    def wrap(self, module: torch.nn.Module) -> torch.nn.Module:
        """Gives the module on this rank's device, with gradients averaged over ranks when there are several."""
        return self._accelerator.prepare(module)

    def share(self, items: Sequence[T]) -> list[T]:
        """Gives this rank's items: every `size`-th one."""
        return list(items[self.rank :: self.size])

    def merge(self, shares: list[T]) -> list[T]:
        """Gives all ranks' items in the order they had before `share`."""
        if self.size == 1:
            return shares
        tagged = [(index * self.size + self.rank, item) for index, item in enumerate(shares)]
        return [item for _, item in sorted(gather_object(tagged), key=lambda pair: pair[0])]

    def from_main(self, value: T) -> T:
        """Gives the main process's value."""
        if self.size == 1:
            return value
        return broadcast_object_list([value])[0]

    def sum(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Gives each tensor summed over ranks."""
        if self.size == 1:
            return list(tensors)
        return [self._sum(tensor.to(self.device)).cpu() for tensor in tensors]

    def _sum(self, tensor: Tensor) -> Tensor:
        total = self._accelerator.reduce(tensor, reduction="sum")
        assert isinstance(total, Tensor)
        return total

    @contextmanager
    def without_sync(self, *modules: torch.nn.Module | None, last: bool) -> Iterator[None]:
        """Gives the context of a backward pass: gradients cross ranks in the last one only."""
        with ExitStack() as stack:
            for module in modules:
                if module is not None and not last:
                    stack.enter_context(self._accelerator.no_sync(module))
            yield

    def backward(self, loss: Tensor) -> None:
        """Back-propagates this rank's part of the step's loss; undoes the averaging over ranks."""
        self._accelerator.backward(loss * self.size)

    def wait(self) -> None:
        """Returns when every rank has come here."""
        self._accelerator.wait_for_everyone()
