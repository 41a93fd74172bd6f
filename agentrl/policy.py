"""The trainable model: log-probabilities and entropies of the tokens in a batch.

Letters: B rows, T tokens, V vocabulary.
"""

import copy
from collections.abc import Iterator
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from agentrl.batch import Batch


def load_model(path: str | Path, dtype: str) -> PreTrainedModel:
    """Gives a causal language model from a folder or a hub id, its weights in `dtype` (float32 or bfloat16)."""
    return AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))


class Policy(torch.nn.Module):
    """A causal language model as a policy that samples at `temperature`."""

    def __init__(self, model: PreTrainedModel, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature

    def forward(self, batch: Batch) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Gives log pi of each token given all before it, and the entropy there, both in nats at the temperature.

        Position t is about `input_ids[:, t]`; the first token of a row, which nothing predicts, gets 0. This is the one
        place where next-token predictions are shifted onto the tokens they are about.
        """
        # Rows are padded on the right, so causal attention never reaches padding: no attention mask is needed.
        logits = self.model(input_ids=batch.input_ids, use_cache=False).logits[:, :-1].float() / self.temperature
        logprobs = torch.log_softmax(logits, dim=-1)
        chosen = logprobs.gather(-1, batch.input_ids[:, 1:, None])[..., 0]
        with torch.no_grad():
            entropy = -(logprobs.exp() * logprobs).sum(-1)
        first = chosen.new_zeros(len(chosen), 1)
        return torch.cat([first, chosen], dim=1), torch.cat([first, entropy], dim=1)

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
