"""The trainable models: log-probabilities and entropies of the tokens in a batch, and a critic.

Letters: B rows, T tokens, H hidden dimensions, V vocabulary; N tokens that are asked about.
"""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from agentrl.attention import enable_packing, lay_out, packing_obstacle
from agentrl.batch import Batch
from agentrl.errors import AgentRLError, ConfigError
from agentrl.logprobs import token_logprobs
from agentrl.lora import base_of, has_adapters, load_adapters, merged_copy, merged_weights, without_adapters


def load_model(path: str | Path, dtype: str) -> PreTrainedModel:
    """Gives a causal language model from a folder or a hub id, its weights in `dtype` (float32 or bfloat16).

    A folder of adapters gives their model with them.
    """
    base = base_of(path)
    model = AutoModelForCausalLM.from_pretrained(base or path, dtype=getattr(torch, dtype))
    if base:
        load_adapters(model, Path(path))
    return model


class Policy(torch.nn.Module):
    """A causal language model as a policy that samples at `temperature`.

    `packed` puts the rows of a batch one after another in one sequence without padding: None where the model's
    attention allows it. `chunk_tokens` is how many tokens have their logits at a time. `autocast` multiplies in
    bfloat16.

    Raises:
        ConfigError: rows shall be packed, and the model's attention does not allow it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        temperature: float = 1.0,
        packed: bool | None = None,
        chunk_tokens: int = 512,
        autocast: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.chunk_tokens = chunk_tokens
        self.autocast = autocast
        self.is_base = False
        """Whether it is the model without its adapters."""
        obstacle = packing_obstacle(model)
        if packed and obstacle:
            raise ConfigError(f"training.packing: not for {type(model).__name__}: {obstacle}; set it to false")
        self.packed = obstacle is None if packed is None else packed
        if self.packed:
            enable_packing(model)

    def forward(
        self, batch: Batch, wanted: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Gives log pi of each token given all before it, and the entropy there, both in nats at the temperature.

        Position t is about `input_ids[:, t]`; tokens that are not `wanted`, which are all but action tokens unless told
        otherwise, get 0, as does the first token of a row, which nothing predicts. This is the one place where
        next-token predictions are shifted onto the tokens they are about.
        """
        wanted = batch.action_mask if wanted is None else wanted
        rows, columns = torch.nonzero(wanted[:, 1:], as_tuple=True)
        ids = batch.input_ids[rows, columns + 1]
        with self._computing():
            if self._has_plain_head:
                found = token_logprobs(
                    self._hidden(batch, rows, columns),
                    _head_of(self.model),
                    ids=ids,
                    temperature=self.temperature,
                    chunk_tokens=self.chunk_tokens,
                )
            else:
                found = _of_logits(self._logits(batch, rows, columns) / self.temperature, ids)
        empty = torch.zeros(wanted.shape, dtype=found[0].dtype, device=wanted.device)
        logprobs, entropy = (empty.index_put((rows, columns + 1), values) for values in found)
        return logprobs, entropy

    @torch.no_grad()
    def kl(self, other: "Policy", batch: Batch) -> Float[Tensor, "B T"]:
        """Gives KL(self || other) over the whole vocabulary where each action token was sampled; 0 elsewhere, in nats.

        In float32 and `chunk_tokens` tokens at a time, so that no [B, T, V] tensor ever exists.

        Raises:
            AgentRLError: the model's logits are more than its head applied to its last hidden states.
        """
        rows, columns = torch.nonzero(batch.action_mask[:, 1:], as_tuple=True)
        for policy in (self, other):
            if not policy._has_plain_head:
                what = f"{type(policy.model).__name__} changes its logits after its head"
                raise AgentRLError(f"{what}, so the exact KL is not supported; use k1")
        hidden = []
        for policy in (self, other):
            with policy._computing():
                hidden.append(policy._hidden(batch, rows, columns).to(policy.model.dtype))
        found = torch.zeros(len(rows), device=rows.device)
        for start in range(0, len(rows), self.chunk_tokens):
            part = slice(start, start + self.chunk_tokens)
            own, others = (
                torch.log_softmax(_head_of(policy.model)(states[part]).float() / policy.temperature, dim=-1)
                for policy, states in zip((self, other), hidden, strict=True)
            )
            found[part] = (own.exp() * (own - others)).sum(-1)
        out = torch.zeros(batch.input_ids.shape, device=rows.device)
        return out.index_put((rows, columns + 1), found)

    def _hidden(self, batch: Batch, rows: Int[Tensor, " N"], columns: Int[Tensor, " N"]) -> Float[Tensor, "N H"]:
        """Gives the last hidden states at these places."""
        inputs, place = lay_out(batch, packed=self.packed)
        trunk: Any = self.model.base_model
        return trunk(**inputs).last_hidden_state.flatten(0, 1)[place[rows, columns]]

    def _logits(self, batch: Batch, rows: Int[Tensor, " N"], columns: Int[Tensor, " N"]) -> Float[Tensor, "N V"]:
        """Gives the logits at these places, of models whose logits are not made by their head alone."""
        inputs, place = lay_out(batch, packed=self.packed)
        return self.model(**inputs).logits.flatten(0, 1)[place[rows, columns]].float()

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Sets the precision, and the adapters aside where it is the model without them."""
        with ExitStack() as stack:
            if self.autocast:
                stack.enter_context(torch.autocast(self.device.type, dtype=torch.bfloat16))
            if self.is_base:
                stack.enter_context(without_adapters(self.model))
            yield

    @cached_property
    def _has_plain_head(self) -> bool:
        """Whether logits are the head applied to the last hidden states and nothing more: found by a look at both."""
        if not isinstance(self.model.get_output_embeddings(), torch.nn.Linear):
            return False
        probe = torch.arange(4, device=self.device)[None]
        trunk: Any = self.model.base_model
        with torch.no_grad():
            made = _head_of(self.model)(trunk(input_ids=probe, use_cache=False).last_hidden_state)
            return torch.allclose(made, self.model(input_ids=probe, use_cache=False).logits, rtol=1e-3, atol=1e-3)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Gives the weights of `whole_model` as they are now, by name, for an engine."""
        yield from merged_weights(self.model) if has_adapters(self.model) else self.model.named_parameters()

    def whole_model(self) -> PreTrainedModel:
        """Gives a model that computes the same on its own: a copy with the adapters merged in, if there are any."""
        return merged_copy(self.model) if has_adapters(self.model) else self.model

    def reference(self) -> "Policy":
        """Gives the policy that training starts from, never to be trained: the reference of a KL loss.

        With adapters it is the same model without them and costs no memory, else a copy.
        """
        if has_adapters(self.model):
            base = copy.copy(self)
            base.is_base = True
            return base
        return copy.deepcopy(self).requires_grad_(False).eval()

    def checkpoint_layers(self) -> None:
        """Makes training keep the inputs of layers only and compute the rest again in the backward pass.

        Raises:
            ConfigError: the model's layers cannot do that.
        """
        modules = self.model.modules()
        layers: list[Any] = [module for module in modules if isinstance(module, GradientCheckpointingLayer)]
        if not layers:
            name = type(self.model).__name__
            raise ConfigError(f"training.gradient_checkpointing: not for {name}, whose layers lack it; set it to false")
        for layer in layers:
            layer.gradient_checkpointing = True
            layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)
            layer.training = True  # a layer asks whether to checkpoint by this; what is in it stays without dropout

    def compile_trunk(self) -> None:
        """Lets torch.compile make the passes through the layers faster, for rows of any number and length."""
        self.model.base_model.compile(dynamic=True)


def _of_logits(logits: Float[Tensor, "N V"], ids: Int[Tensor, " N"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Gives log pi of each token, and the entropy of its distribution, without gradient."""
    logprobs = torch.log_softmax(logits, dim=-1)
    with torch.no_grad():
        entropy = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(-1, ids[:, None])[:, 0], entropy


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
        self.packed = policy.packed
        self.autocast = policy.autocast
        self.head = torch.nn.Linear(_head_of(policy.model).in_features, 1, bias=False)
        self.to(policy.device)
        torch.nn.init.zeros_(self.head.weight)

    def forward(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the value of the state in which each token was sampled: what comes before it.

        The first token of a row, before which there is nothing, gets 0, as does padding.
        """
        rows, columns = torch.nonzero(batch.attention_mask[:, 1:], as_tuple=True)
        inputs, place = lay_out(batch, packed=self.packed)
        with torch.autocast(batch.input_ids.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            hidden = self.trunk(**inputs).last_hidden_state.flatten(0, 1)[place[rows, columns]]
        values = self.head(hidden.to(self.head.weight.dtype))[:, 0].float()
        empty = torch.zeros(batch.input_ids.shape, device=values.device)
        return empty.index_put((rows, columns + 1), values)
