"""Keys and values of conversations, each in a slot of its own, and attention over them.

One forward pass reads the new tokens of all conversations, one after another in a single sequence without padding; only
attention tells them apart. Conversations that go on are in the first slots, so what they read needs no copy.

Letters: T new tokens of all rows, R rows (row i is in slot i), S slots, P positions of a slot, W positions in use, G
rows of a group with at most F new tokens, H query heads, K key-value heads, D head size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from agentrl.attention import layer_kinds
from agentrl.errors import AgentRLError, ConfigError

ATTENTION = "agentrl_slots"
_UNSUPPORTED = ("softcap", "s_aux", "position_bias")


class SlotCache:
    """Grows by `reserve`; a forward pass writes at the `places` of its layout, which it is told before."""

    def __init__(self) -> None:
        self.num_slots = 0
        self.room = 0
        """Positions of a slot."""
        self.places: Int[Tensor, " T"] | None = None
        self._layers: list[tuple[Float[Tensor, "S P K D"], Float[Tensor, "S P K D"]]] = []

    def reserve(self, num_slots: int, room: int) -> None:
        """Has this many slots, each with room for this many tokens; what is in slots that stay is kept."""
        if (num_slots, room) == (self.num_slots, self.room):
            return
        slots, positions = min(num_slots, self.num_slots), min(room, self.room)
        self.num_slots, self.room = num_slots, room
        for i, (keys, values) in enumerate(self._layers):
            grown = self._empty(keys), self._empty(values)
            for new, old in zip(grown, (keys, values), strict=True):
                new[:slots, :positions] = old[:slots, :positions]
            self._layers[i] = grown

    @property
    def num_layers(self) -> int:
        """How many layers have written."""
        return len(self._layers)

    def swap(self, one: int, other: int) -> None:
        """Exchanges what is in two slots."""
        for layer in self._layers:
            for states in layer:
                kept = states[one].clone()
                states[one] = states[other]
                states[other] = kept

    def update(
        self,
        keys: Float[Tensor, "1 K T D"],
        values: Float[Tensor, "1 K T D"],
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Float[Tensor, "S P K D"], Float[Tensor, "S P K D"]]:
        """Writes the new tokens' and gives all: what attention layers of transformers call."""
        del args, kwargs
        assert self.places is not None
        keys, values = keys[0].transpose(0, 1), values[0].transpose(0, 1)
        if layer_idx == len(self._layers):
            self._layers.append((self._empty(keys), self._empty(values)))
        for states, new in zip(self._layers[layer_idx], (keys, values), strict=True):
            states.view(-1, *new.shape[1:]).index_copy_(0, self.places, new)
        return self._layers[layer_idx]

    def _empty(self, like: Tensor) -> Tensor:
        # Zeros: what is masked is still multiplied by 0, and memory that nobody wrote may hold NaN.
        return like.new_zeros(self.num_slots, self.room, *like.shape[-2:])


@dataclass(frozen=True)
class Group:
    """Rows whose new tokens, but for the last of each, attend together."""

    slots: Int[Tensor, " G"]
    tokens: Int[Tensor, " G*F"]
    """Where each is among the T; padding is a token of the same row."""
    real: Int[Tensor, " N"]
    """Which of the G*F are not padding."""
    width: int
    mask: Float[Tensor, "G 1 F W"] | None
    """Added to the scores; None where nothing was known before, so that causal attention does."""


@dataclass(frozen=True)
class Layout:
    """Who is who among the T new tokens of a forward pass."""

    positions: Int[Tensor, " T"]
    places: Int[Tensor, " T"]
    """Where its key goes, counted through all slots."""
    last: Int[Tensor, " R"]
    """The last new token of each row."""
    width: int
    mask: Float[Tensor, "R 1 1 W"]
    groups: tuple[Group, ...]
    """For all tokens but the last ones."""


def layout(known: Sequence[int], new: Sequence[int], *, room: int, dtype: torch.dtype, device: torch.device) -> Layout:
    """Gives the layout of rows with `known` tokens in their slots and `new` ones; scores are of type `dtype`."""

    def tensor(values: Any) -> Tensor:
        return torch.as_tensor(values, device=device)

    def mask(hidden: np.ndarray) -> Tensor:
        return torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(
            tensor(hidden), torch.finfo(dtype).min
        )

    starts, counts = np.asarray(known), np.asarray(new)
    ends = starts + counts
    first = np.cumsum(counts) - counts
    positions = np.arange(counts.sum()) + np.repeat(starts - first, counts)
    width = int(ends.max())
    return Layout(
        positions=tensor(positions),
        places=tensor(positions + np.repeat(np.arange(len(counts)) * room, counts)),
        last=tensor(first + counts - 1),
        width=width,
        mask=mask((np.arange(width) >= ends[:, None])[:, None, None]),
        groups=tuple(
            _group(rows, starts, counts - 1, first, tensor=tensor, mask=mask) for rows in _alike(starts, counts - 1)
        ),
    )


def _alike(starts: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    """Gives the rows that have any tokens in groups: new or going on, and as long as each other but for a factor √2."""
    key = np.where(counts > 0, 2 * np.floor(2 * np.log2(np.maximum(counts, 1))) + (starts > 0), -1)
    return [np.flatnonzero(key == one) for one in np.unique(key[key >= 0])]


def _group(
    rows: np.ndarray, starts: np.ndarray, counts: np.ndarray, first: np.ndarray, *, tensor: Any, mask: Any
) -> Group:
    offsets = np.arange(counts[rows].max())
    tokens = first[rows, None] + np.minimum(offsets, counts[rows, None] - 1)
    width = int((starts + counts)[rows].max())
    seen = starts[rows, None] + offsets
    return Group(
        slots=tensor(rows),
        tokens=tensor(tokens.ravel()),
        real=tensor(np.flatnonzero(offsets < counts[rows, None])),
        width=width,
        mask=mask((np.arange(width) > seen[..., None])[:, None]) if starts[rows[0]] else None,
    )


def attend(
    module: torch.nn.Module,
    query: Float[Tensor, "1 H T D"],
    key: Float[Tensor, "S P K D"],
    value: Float[Tensor, "S P K D"],
    attention_mask: None,
    *,
    scaling: float | None = None,
    slots: Layout | None = None,
    **kwargs: Any,
) -> tuple[Float[Tensor, "1 T H D"], None]:
    """Gives what attention makes of the new tokens; without a layout it is transformers' causal attention.

    Raises:
        AgentRLError: the model attends in a way that this does not, or no further than a conversation is long.
    """
    if slots is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    _check(slots.width, kwargs)
    new = query[0].transpose(0, 1)
    (num_heads, size), num_kv = new.shape[1:], key.shape[2]
    repeat = num_heads // num_kv
    out = new.new_empty(len(new), num_heads, value.shape[-1])
    for group in slots.groups:
        rows, longest = len(group.slots), len(group.tokens) // len(group.slots)
        keys, values = (states[group.slots, : group.width].transpose(1, 2) for states in (key, value))
        asked = new[group.tokens].view(rows, longest, num_heads, size).transpose(1, 2)
        if group.mask is None:
            found = scaled_dot_product_attention(
                asked, keys, values, is_causal=True, scale=scaling, enable_gqa=repeat > 1
            )
        else:
            # All queries of a key-value head side by side: masked attention in groups is slow on GPUs.
            asked = asked.reshape(rows, num_kv, repeat * longest, size)
            mask = group.mask.repeat(1, 1, repeat, 1)
            found = scaled_dot_product_attention(asked, keys, values, attn_mask=mask, scale=scaling)
            found = found.view(rows, num_heads, longest, -1)
        found = found.transpose(1, 2).reshape(rows * longest, num_heads, -1)
        out.index_copy_(0, group.tokens[group.real], found[group.real])
    rows = len(slots.last)
    asked = (new if len(new) == rows else new[slots.last]).reshape(rows, num_kv, repeat, size)
    keys, values = (states[:rows, : slots.width].transpose(1, 2) for states in (key, value))
    found = scaled_dot_product_attention(asked, keys, values, attn_mask=slots.mask, scale=scaling)
    found = found.reshape(rows, num_heads, -1)
    return (found if len(new) == rows else out.index_copy_(0, slots.last, found))[None], None


def check_model(model: PreTrainedModel, context_tokens: int) -> None:
    """Passes if slots hold all that the model remembers of so long a conversation; reads a few tokens to find out.

    Raises:
        ConfigError: they do not.
    """
    name, do = type(model).__name__, "set another engine.name, or another model"
    window = getattr(model.config.get_text_config(), "sliding_window", None)
    kinds = layer_kinds(model)
    if "sliding_attention" in kinds and window is not None and window < context_tokens:
        problem = f"{context_tokens}, but layers of {name} look back {window} tokens"
        raise ConfigError(f"engine.context_tokens: {problem}; set {window} or less, or another engine.name")
    if others := sorted(kinds - {"full_attention", "sliding_attention"}):
        raise ConfigError(f"engine.name: hf does not sample with layers of {', '.join(others)}, as {name} has; {do}")
    try:
        num_layers = _try(model)
    except (AttributeError, IndexError, RuntimeError, TypeError) as error:
        raise ConfigError(f"engine.name: hf cannot sample with {name} ({error}); {do}") from error
    if num_layers < model.config.get_text_config().num_hidden_layers:
        raise ConfigError(f"engine.name: hf keeps keys and values, and not all layers of {name} have some; {do}")


@torch.inference_mode()
def _try(model: PreTrainedModel) -> int:
    """Reads a conversation in two parts and gives how many layers have kept something of it."""
    cache = SlotCache()
    cache.reserve(1, 4)
    for known, ids in ((0, [0, 1, 2]), (3, [0])):
        plan = layout([known], [len(ids)], room=cache.room, dtype=model.dtype, device=model.device)
        read(model, ids, cache=cache, plan=plan)
    return cache.num_layers


def read(model: PreTrainedModel, ids: Sequence[int], *, cache: SlotCache, plan: Layout) -> Float[Tensor, "R V"]:
    """Reads the new tokens of all rows and gives the logits after the last of each."""
    cache.places = plan.places
    made = model(
        input_ids=torch.tensor([ids], device=model.device),
        position_ids=plan.positions[None],
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=plan.last,
        slots=plan,
    )
    return made.logits[0]


def _check(width: int, asked: dict[str, Any]) -> None:
    window = asked.get("sliding_window")
    if window is not None and width > window:
        raise AgentRLError(
            f"engine.context_tokens: the model looks back {window} tokens and a conversation has {width}; set at most "
            f"{window}, or another engine.name"
        )
    unknown = [name for name in _UNSUPPORTED if asked.get(name) is not None]
    if unknown:
        raise AgentRLError(
            f"engine.name: hf does not attend with {', '.join(unknown)}, as this model does; set another"
        )


AttentionInterface.register(ATTENTION, attend)
