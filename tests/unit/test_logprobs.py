import math

import pytest
import torch
from torch import Tensor

from agentrl.bench.measure import peak_mib
from agentrl.logprobs import token_logprobs

TOKENS, HIDDEN, WORDS = 11, 6, 13


def given(dtype: torch.dtype = torch.float32, *, bias: bool = False) -> tuple[Tensor, torch.nn.Linear, Tensor]:
    """Gives hidden states, a head and the tokens that were sampled."""
    torch.manual_seed(0)
    hidden = torch.randn(TOKENS, HIDDEN, dtype=dtype, requires_grad=True)
    head = torch.nn.Linear(HIDDEN, WORDS, bias=bias, dtype=dtype)
    torch.nn.init.normal_(head.weight)
    return hidden, head, torch.randint(WORDS, (TOKENS,))


def naive(hidden: Tensor, head: torch.nn.Linear, ids: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    table = (head(hidden) / temperature).log_softmax(-1)
    return table.gather(-1, ids[:, None])[:, 0], -(table.exp() * table).sum(-1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("chunk_tokens", [1, 4, 11, 100])
def test_values_and_gradients_are_those_of_the_full_table(chunk_tokens: int, temperature: float, bias: bool) -> None:
    found = []
    for chunked in (True, False):
        hidden, head, ids = given(bias=bias)
        if chunked:
            values = token_logprobs(hidden, head, ids=ids, temperature=temperature, chunk_tokens=chunk_tokens)
        else:
            values = naive(hidden, head, ids, temperature)
        (values[0] * torch.arange(TOKENS)).sum().backward()
        found.append([*values, hidden.grad, *(one.grad for one in head.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_the_gradient_is_the_derivative_of_the_value(temperature: float) -> None:
    hidden, head, ids = given(torch.float64, bias=True)

    def logprobs(hidden: Tensor, *_: Tensor) -> Tensor:
        return token_logprobs(hidden, head, ids=ids, temperature=temperature, chunk_tokens=4)[0]

    assert torch.autograd.gradcheck(logprobs, (hidden, *head.parameters()))


def test_equally_probable_words_have_the_entropy_of_their_number_and_no_gradient() -> None:
    hidden, head, ids = given()
    torch.nn.init.zeros_(head.weight)
    logprobs, entropy = token_logprobs(hidden, head, ids=ids, temperature=1.0, chunk_tokens=5)
    assert logprobs.tolist() == [pytest.approx(-math.log(WORDS))] * TOKENS
    assert entropy.tolist() == [pytest.approx(math.log(WORDS))] * TOKENS
    assert not entropy.requires_grad


def test_logits_of_any_size_have_finite_log_probabilities() -> None:
    hidden, head, ids = given()
    with torch.no_grad():
        head.weight.mul_(1e4)
    logprobs, entropy = token_logprobs(hidden, head, ids=ids, temperature=1.0, chunk_tokens=4)
    logprobs.sum().backward()
    assert hidden.grad is not None
    assert all(one.isfinite().all() for one in (logprobs, entropy, hidden.grad))


def test_a_frozen_head_gets_no_gradient_and_its_hidden_states_do() -> None:
    hidden, head, ids = given()
    head.requires_grad_(False)
    token_logprobs(hidden, head, ids=ids, temperature=1.0, chunk_tokens=4)[0].sum().backward()
    assert head.weight.grad is None
    expected, naive_head, _ = given()
    naive(expected, naive_head, ids, 1.0)[0].sum().backward()
    torch.testing.assert_close(hidden.grad, expected.grad, rtol=1e-5, atol=1e-5)


def test_half_precision_is_multiplied_in_half_and_summed_in_float32() -> None:
    hidden, head, ids = given(torch.bfloat16)
    logprobs, entropy = token_logprobs(hidden, head, ids=ids, temperature=1.0, chunk_tokens=4)
    logprobs.sum().backward()
    assert logprobs.dtype == entropy.dtype == torch.float32
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.bfloat16
    table = head(hidden).float().log_softmax(-1)
    torch.testing.assert_close(logprobs, table.gather(-1, ids[:, None])[:, 0], rtol=1e-5, atol=1e-5)


def test_the_logits_of_all_tokens_never_exist_together() -> None:
    tokens, words = 512, 4096
    ids = torch.randint(words, (tokens,))
    hidden, head = torch.randn(tokens, 32, requires_grad=True), torch.nn.Linear(32, words, bias=False)
    chunked = peak_mib(
        lambda: token_logprobs(hidden, head, ids=ids, temperature=1.0, chunk_tokens=32)[0].sum().backward()
    )
    everything = tokens * words * 4 / 2**20
    assert chunked < 0.35 * everything
    assert peak_mib(lambda: naive(hidden, head, ids, 1.0)[0].sum().backward()) > everything
