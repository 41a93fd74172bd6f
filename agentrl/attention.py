"""Rows that are packed into one sequence, and attention that keeps them apart.

Letters: B rows, T tokens. In attention: b sequences, A heads of queries, K of keys and values, R tokens,
D dimensions.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.utils.import_utils import is_flash_attn_2_available

from agentrl.batch import Batch

NAME = "agentrl_varlen_sdpa"
"""What transformers calls the attention below."""


def layer_kinds(model: PreTrainedModel) -> set[str]:
    """Gives what kinds of layers the model has, in transformers' words: full_attention, sliding_attention ..."""
    config = model.config.get_text_config()
    has_window = getattr(config, "sliding_window", None) is not None
    return {*(getattr(config, "layer_types", None) or ["sliding_attention" if has_window else "full_attention"])}


def packing_obstacle(model: PreTrainedModel) -> str | None:
    """Says why the rows of a batch cannot be packed for this model; None: they can."""
    config = model.config.get_text_config()
    if others := sorted(layer_kinds(model) - {"full_attention"}):
        return f"its attention is not full in every layer ({', '.join(others)})"
    if getattr(config, "attn_logit_softcapping", None):
        return "its attention caps its logits"
    return None if model._supports_attention_backend else "its attention cannot be exchanged"


def enable_packing(model: PreTrainedModel) -> None:
    """Lets the model read packed rows: with flash attention where it is installed and weights are in half precision."""
    has_flash = is_flash_attn_2_available() and model.dtype in (torch.bfloat16, torch.float16)
    model.set_attn_implementation("flash_attention_2" if has_flash else NAME)


class Layout(NamedTuple):
    """A batch as a model reads it."""

    inputs: dict[str, Any]
    """What the model is called with."""
    place: Int[Tensor, "B T"]
    """Where each token is in the model's output, its first two dimensions taken together."""


def lay_out(batch: Batch, *, packed: bool) -> Layout:
    """Gives the rows of a batch side by side as they are, or `packed` one after another without padding."""
    ids, real, lengths = batch.input_ids, batch.attention_mask, batch.lengths
    if not packed:
        # Rows are padded on the right, so causal attention never reaches padding: no attention mask is needed.
        place = torch.arange(ids.numel(), device=ids.device).reshape(ids.shape)
        return Layout({"input_ids": ids, "use_cache": False}, place)
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
    longest = int(lengths.max())
    inputs = {
        "input_ids": ids[real][None],
        "position_ids": (real.cumsum(1) - 1)[real][None],
        "use_cache": False,
        "cu_seq_lens_q": ends,
        "cu_seq_lens_k": ends,
        "max_length_q": longest,
        "max_length_k": longest,
    }
    return Layout(inputs, ends[:-1, None] + real.cumsum(1) - 1)


@torch.compiler.disable
def _attention(
    module: torch.nn.Module,
    query: Float[Tensor, "b A R D"],
    key: Float[Tensor, "b K R2 D"],
    value: Float[Tensor, "b K R2 D2"],
    attention_mask: Tensor | None,
    **settings: Any,
) -> tuple[Float[Tensor, "b R A D2"], None]:
    """Attends within each segment that `cu_seq_lens_q` marks; without marks, as transformers' own does."""
    ends = settings.get("cu_seq_lens_q")
    if ends is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    assert settings.get("sliding_window") is None, "packing_obstacle refuses such models"
    assert settings.get("softcap") is None, "packing_obstacle refuses such models"
    lengths = ends.diff().tolist()
    found = [
        scaled_dot_product_attention(
            *segment,
            dropout_p=settings.get("dropout", 0.0),
            is_causal=True,
            scale=settings.get("scaling"),
            enable_gqa=query.shape[1] != key.shape[1],
        )
        for segment in zip(*(one.split(lengths, dim=2) for one in (query, key, value)), strict=True)
    ]
    return torch.cat(found, dim=2).transpose(1, 2).contiguous(), None


def _mask(*args: Any, attention_mask: Tensor | None = None, **settings: Any) -> Tensor | None:
    """Gives no mask for packed rows: segments are causal by themselves."""
    return None if attention_mask is None else sdpa_mask(*args, attention_mask=attention_mask, **settings)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, _mask)
