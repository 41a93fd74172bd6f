"""Keys and values of conversations between their turns.

Letters: R requests, L layers, H key-value heads, P cached positions (left-padded in a batch), D head size.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer


@dataclass(frozen=True)
class Prefix:
    """Tokens a model has read, and the keys and values it made of them."""

    ids: tuple[int, ...]
    states: Float[Tensor, "2L H P D"] | None
    """Keys of layer 0, values of layer 0, keys of layer 1 ...; None for no tokens."""

    def __len__(self) -> int:
        return len(self.ids)


NOTHING = Prefix((), None)


class PrefixCache:
    """Prefixes by their tokens, at most `max_tokens` in all; the oldest go first. Each is given out once."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._prefixes: dict[tuple[int, ...], Prefix] = {}
        self._lengths: Counter[int] = Counter()
        self._num_tokens = 0

    def put(self, prefixes: Iterable[Prefix]) -> None:
        """Keeps prefixes."""
        for prefix in prefixes:
            self._remove(prefix.ids)
            self._prefixes[prefix.ids] = prefix
            self._lengths[len(prefix)] += 1
            self._num_tokens += len(prefix)
        while self._num_tokens > self._max_tokens:
            self._remove(next(iter(self._prefixes)))

    def take(self, prompt_ids: tuple[int, ...]) -> Prefix:
        """Gives, and forgets, the longest prefix that `prompt_ids` goes on from; NOTHING when there is none."""
        for length in sorted(self._lengths, reverse=True):
            if length < len(prompt_ids) and (prefix := self._prefixes.get(prompt_ids[:length])):
                self._remove(prefix.ids)
                return prefix
        return NOTHING

    def clear(self) -> None:
        """Forgets everything."""
        self._prefixes.clear()
        self._lengths.clear()
        self._num_tokens = 0

    def _remove(self, ids: tuple[int, ...]) -> None:
        if self._prefixes.pop(ids, None):
            self._num_tokens -= len(ids)
            self._lengths[len(ids)] -= 1
            if not self._lengths[len(ids)]:
                del self._lengths[len(ids)]


class RoomyLayer(DynamicLayer):
    """A cache layer with room for `room` positions from the start; the stock one copies all of it for every token."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Takes the room."""
        batch, heads, _, size = key_states.shape
        self._all_keys = key_states.new_empty(batch, heads, self._room, size)
        self._all_values = value_states.new_empty(batch, heads, self._room, size)
        self._use(0)
        self.device = key_states.device
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Writes the new positions and gives all that are used."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, end = self._used, self._used + key_states.shape[-2]
        self._all_keys[..., start:end, :] = key_states
        self._all_values[..., start:end, :] = value_states
        return self._use(end)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keeps some rows."""
        self._all_keys, self._all_values = self._all_keys[indices], self._all_values[indices]
        self._use(self._used)

    def _use(self, end: int) -> tuple[Tensor, Tensor]:
        self._used = end
        self.keys, self.values = self._all_keys[..., :end, :], self._all_values[..., :end, :]
        return self.keys, self.values


def join(
    prefixes: Sequence[Prefix], config: PretrainedConfig, *, room: int
) -> tuple[DynamicCache, Bool[Tensor, "R P"]]:
    """Gives one batched cache of several prefixes, padded on the left, and the mask of its real positions.

    The cache has room for `room` more positions; models that do not keep every position get their stock cache.
    """
    cache = DynamicCache(config=config)
    if all(type(layer) is DynamicLayer for layer in cache.layers):
        cache.layers[:] = [RoomyLayer(room + max(map(len, prefixes))) for _ in cache.layers]
    longest = max(prefixes, key=len)
    width = len(longest)
    mask = torch.zeros(len(prefixes), width, dtype=torch.bool)
    if longest.states is None:
        return cache, mask
    layers, heads, _, size = longest.states.shape
    states = longest.states.new_zeros(layers, len(prefixes), heads, width, size)
    for row, prefix in enumerate(prefixes):
        if prefix.states is not None:
            states[:, row, :, width - len(prefix) :] = prefix.states
            mask[row, width - len(prefix) :] = True
    for layer in range(layers // 2):
        cache.update(states[2 * layer], states[2 * layer + 1], layer)
    return cache, mask


def split(
    cache: DynamicCache, mask: Bool[Tensor, "R P"], rows: Sequence[int], ids: Sequence[tuple[int, ...]]
) -> list[Prefix]:
    """Gives the prefixes of some rows of a batched cache; none for models that do not keep every position."""
    chosen = torch.tensor(rows, device=mask.device)
    layers: list[Tensor] = []
    for layer in cache.layers:
        if not isinstance(layer, RoomyLayer) or layer.keys is None or layer.values is None:
            return []
        layers += [layer.keys[chosen], layer.values[chosen]]
    states = torch.stack(layers)
    return [
        Prefix(tokens, states[:, i][:, :, mask[row]].clone())
        for i, (row, tokens) in enumerate(zip(rows, ids, strict=True))
    ]
