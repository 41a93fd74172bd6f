"""The trainable models: log-probabilities and entropies of the tokens in a batch, and a critic.

Letters: B rows, T tokens, H hidden dimensions, V vocabulary; R sequences of n tokens.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from agentrl.batch import Batch
from agentrl.errors import AgentRLError


def load_model(path: str | Path, dtype: str) -> PreTrainedModel:
    """Gives a causal language model from a folder or a hub id, its weights in `dtype` (float32 or bfloat16)."""
    return AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))


class Policy(torch.nn.Module):
    """A causal language model as a policy that samples at `temperature`.

    `packed` puts the rows of a batch one after another in one sequence without padding. transformers tells them apart
    by their positions; attention kernels without sequence lengths then waste what padding would have.
    """

    def __init__(self, model: PreTrainedModel, *, temperature: float = 1.0, packed: bool = False) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.packed = packed

    def forward(self, batch: Batch) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Gives log pi of each token given all before it, and the entropy there, both in nats at the temperature.

        Position t is about `input_ids[:, t]`; the first token of a row, which nothing predicts, gets 0. This is the one
        place where next-token predictions are shifted onto the tokens they are about.
        """
        if self.packed:
            return self._packed(batch)
        # Rows are padded on the right, so causal attention never reaches padding: no attention mask is needed.
        return self._of_tokens(self.model(input_ids=batch.input_ids, use_cache=False).logits, batch.input_ids)

    def _packed(self, batch: Batch) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        real = batch.attention_mask
        ids, positions = batch.input_ids[real][None], (real.cumsum(1) - 1)[real][None]
        logits = self.model(input_ids=ids, position_ids=positions, use_cache=False).logits
        found = (torch.where(positions > 0, values, 0.0)[0] for values in self._of_tokens(logits, ids))
        empty = torch.zeros(real.shape, dtype=logits.float().dtype, device=real.device)
        logprobs, entropy = (empty.masked_scatter(real, values) for values in found)
        return logprobs, entropy

    def _of_tokens(
        self, logits: Float[Tensor, "R n V"], ids: Int[Tensor, "R n"]
    ) -> tuple[Float[Tensor, "R n"], Float[Tensor, "R n"]]:
        """Gives log pi and entropy of each token, shifted onto the token they are about."""
        logprobs = torch.log_softmax(logits[:, :-1].float() / self.temperature, dim=-1)
        chosen = logprobs.gather(-1, ids[:, 1:, None])[..., 0]
        with torch.no_grad():
            entropy = -(logprobs.exp() * logprobs).sum(-1)
        first = chosen.new_zeros(len(chosen), 1)
        return torch.cat([first, chosen], dim=1), torch.cat([first, entropy], dim=1)

    @torch.no_grad()
    def kl(self, other: "Policy", batch: Batch, *, chunk_tokens: int = 1024) -> Float[Tensor, "B T"]:
        """Gives KL(self || other) over the whole vocabulary where each action token was sampled; 0 elsewhere, in nats.

        In float32 and `chunk_tokens` tokens at a time, so that no [B, T, V] tensor ever exists.

        Raises:
            AgentRLError: the model's logits are more than its head applied to its last hidden states.
        """
        rows, columns = torch.nonzero(batch.action_mask[:, 1:], as_tuple=True)
        hidden = [policy._hidden(batch)[rows, columns] for policy in (self, other)]
        found = torch.zeros(len(rows), device=rows.device)
        for start in range(0, len(rows), chunk_tokens):
            part = slice(start, start + chunk_tokens)
            own, others = (
                torch.log_softmax(policy._head(states[part]).float() / policy.temperature, dim=-1)
                for policy, states in zip((self, other), hidden, strict=True)
            )
            found[part] = (own.exp() * (own - others)).sum(-1)
        out = torch.zeros(batch.input_ids.shape, device=rows.device)
        return out.index_put((rows, columns + 1), found)

    def _hidden(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """Gives the last hidden states, after a look whether the logits can be made of them."""
        probe = batch.input_ids[:1, :4]
        trunk: Any = self.model.base_model
        made = self._head(trunk(input_ids=probe, use_cache=False).last_hidden_state)
        if not torch.allclose(made, self.model(input_ids=probe, use_cache=False).logits, rtol=1e-3, atol=1e-3):
            name = type(self.model).__name__
            raise AgentRLError(f"{name} changes its logits after its head, so the exact KL is not supported; use k1")
        return trunk(input_ids=batch.input_ids, use_cache=False).last_hidden_state

    def _head(self, hidden: Float[Tensor, "*tokens H"]) -> Float[Tensor, "*tokens V"]:
        return _head_of(self.model)(hidden)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Gives the model's parameters by name, for an engine."""
        yield from self.model.named_parameters()

    def frozen_copy(self) -> "Policy":
        """Gives the policy as it is now, never to be trained: the reference of a KL loss."""
        return copy.deepcopy(self).requires_grad_(False).eval()


def _head_of(model: PreTrainedModel) -> torch.nn.Linear:
    """Gives the layer that makes logits of hidden states."""
    head = model.get_output_embeddings()
    assert isinstance(head, torch.nn.Linear), f"{type(model).__name__} has no linear head"
    return head


class Critic(torch.nn.Module):
    """A copy of a policy's trunk with a scalar head that starts at 0."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.trunk: Any = copy.deepcopy(policy.model.base_model)
        self.head = torch.nn.Linear(_head_of(policy.model).in_features, 1, bias=False)
        self.to(policy.device)
        torch.nn.init.zeros_(self.head.weight)

    def forward(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the value of the state in which each token was sampled: what comes before it.

        The first token of a row, before which there is nothing, gets 0.
        """
        hidden = self.trunk(input_ids=batch.input_ids, use_cache=False).last_hidden_state[:, :-1]
        values = self.head(hidden.to(self.head.weight.dtype))[..., 0].float()
        return torch.cat([values.new_zeros(len(values), 1), values], dim=1)
