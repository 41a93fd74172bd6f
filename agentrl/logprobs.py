"""Log-probabilities and entropies of tokens from hidden states, with the logits of a few tokens at a time.

Letters: N tokens, H hidden dimensions, V vocabulary.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear


def token_logprobs(
    hidden: Float[Tensor, "N H"],
    head: torch.nn.Linear,
    *,
    ids: Int[Tensor, " N"],
    temperature: float,
    chunk_tokens: int,
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Gives log pi of each token and the entropy of its distribution, in nats at the temperature.

    The logits of `chunk_tokens` tokens exist at a time, also in the backward pass, which computes them again. Log pi
    has a gradient; the entropy has none. Softmax and sums are in float32 or better; under autocast, products are in
    its type.
    """
    weight, bias = head.weight, head.bias
    if torch.is_autocast_enabled(hidden.device.type):
        dtype = torch.get_autocast_dtype(hidden.device.type)
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    with torch.autocast(hidden.device.type, enabled=False):
        return _TokenLogprobs.apply(hidden, weight, bias, ids, temperature, chunk_tokens)


class _TokenLogprobs(torch.autograd.Function):
    """The sums of a log-softmax, chunk by chunk; d log pi / d logits = onehot - pi."""

    @staticmethod
    def forward(  # its arguments are torch's to choose
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        ids: Tensor,
        temperature: float,
        chunk_tokens: int,
    ) -> tuple[Tensor, Tensor]:
        """Gives log pi and entropy."""
        exact = torch.promote_types(hidden.dtype, torch.float32)
        logprobs, entropy, log_total = (torch.empty(len(ids), dtype=exact, device=ids.device) for _ in range(3))
        for part in _parts(len(ids), chunk_tokens):
            logits = _logits(hidden[part], weight, bias, temperature)
            highest = logits.amax(-1, keepdim=True)
            logits -= highest
            odds = logits.exp()
            total = odds.sum(-1)
            logprobs[part] = logits.gather(-1, ids[part, None])[:, 0] - total.log()
            entropy[part] = total.log() - torch.bmm(odds[:, None], logits[..., None])[:, 0, 0] / total
            log_total[part] = total.log() + highest[:, 0]
        ctx.save_for_backward(hidden, weight, bias, ids, log_total)
        ctx.temperature, ctx.chunk_tokens = temperature, chunk_tokens
        ctx.mark_non_differentiable(entropy)
        return logprobs, entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Gives the gradients of hidden states, weight and bias; sums over tokens are in float32 or better."""
        hidden, weight, bias, ids, log_total = ctx.saved_tensors
        needs_hidden, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        hidden_grad = torch.empty_like(hidden) if needs_hidden else None
        weight_grad = torch.zeros_like(weight, dtype=log_total.dtype) if needs_weight else None
        bias_grad = torch.zeros_like(bias, dtype=log_total.dtype) if needs_bias else None
        for part in _parts(len(ids), ctx.chunk_tokens):
            slopes = _logits(hidden[part], weight, bias, ctx.temperature).sub_(log_total[part, None]).exp_()
            upper = grad_outputs[0][part, None] / ctx.temperature
            slopes.mul_(-upper).scatter_add_(1, ids[part, None], upper)
            if bias_grad is not None:
                bias_grad += slopes.sum(0)
            slopes = slopes.to(hidden.dtype)
            if hidden_grad is not None:
                torch.mm(slopes, weight, out=hidden_grad[part])
            if weight_grad is not None and weight_grad.dtype == slopes.dtype:
                weight_grad.addmm_(slopes.t(), hidden[part])
            elif weight_grad is not None:
                weight_grad += slopes.t() @ hidden[part]
        of_type = [None if one is None else one.to(hidden.dtype) for one in (weight_grad, bias_grad)]
        return hidden_grad, *of_type, None, None, None


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float) -> Tensor:
    """Gives logits at the temperature, in a tensor that the caller may overwrite."""
    logits = linear(hidden, weight, bias)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return logits if temperature == 1 else logits.div_(temperature)


def _parts(length: int, size: int) -> Iterator[slice]:
    """Gives the parts of `length` things, `size` at a time."""
    return (slice(start, start + size) for start in range(0, length, size))
