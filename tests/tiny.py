"""A model small enough to be made, trained and sampled in a test."""

from pathlib import Path

import torch
from tokenizers import Regex, normalizers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from agentrl.batch import Batch
from agentrl.policy import Policy
from agentrl.word_tokenizer import SPECIAL, word_tokenizer

WORDS = [*"0123456789", "I", "think", "of", "a", "digit", "higher", "lower", "correct"]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Gives a tokenizer of whole words and digits; a chat reads `<obs> text <act> text <eot> <obs> ...`."""
    return word_tokenizer(WORDS, gap="", normalizer=normalizers.Replace(Regex(r"[^A-Za-z0-9]"), " "))


def tiny_model(vocab_size: int, *, hidden: int = 32, seed: int = 0) -> LlamaForCausalLM:
    """Gives a two-layer Llama with random weights."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=SPECIAL.index("<eot>"),
        pad_token_id=SPECIAL.index("<pad>"),
    )
    return LlamaForCausalLM(config)


def write_tiny_model(folder: Path) -> Path:
    """Writes both, as a Hugging Face folder, and gives it."""
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(folder)
    tiny_model(len(tokenizer)).save_pretrained(folder)
    return folder


class TablePolicy(Policy):
    """A policy whose log-probability of a token depends on its id alone: gradients can be read off the table."""

    def __init__(self, table: Tensor) -> None:
        torch.nn.Module.__init__(self)
        self.table = torch.nn.Parameter(table.clone())
        self.packed = False

    def forward(self, batch: Batch, wanted: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Gives each token's entry, and 0 for the entropy."""
        del wanted
        logprobs = self.table[batch.input_ids]
        return logprobs, torch.zeros_like(logprobs)
