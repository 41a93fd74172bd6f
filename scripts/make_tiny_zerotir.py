"""Writes the tiny policy of ZeroTIR's sums before it has learned anything.

    python scripts/make_tiny_zerotir.py runs/tiny_zerotir_init
    agentrl sft zerotir/tiny_copy --set model.path=runs/tiny_zerotir_init
    agentrl sft zerotir/tiny_guess --set model.path=runs/latest/checkpoints/step_000600
    python scripts/make_tiny_models.py ship runs/latest/checkpoints/step_000100 configs/models/tiny-zerotir

Every printable character is a token, and so is each phrase that all episodes share: text is encoded and decoded without
loss, and a digit is never part of a longer token.
"""

import argparse
import string
from pathlib import Path

from make_tiny_models import make_model
from tokenizers import Regex, decoders, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agentrl.word_tokenizer import word_tokenizer

PHRASES = ["Compute ", " * ", "```python\nprint(", ")\n```", "```output\n", "\n```", "\\boxed{"]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Gives the tokenizer; a chat reads `<obs>question<act>turn<eot><obs>output<act>...`."""
    escaped = "|".join("".join(f"\\x{ord(character):02x}" for character in phrase) for phrase in PHRASES)
    return word_tokenizer(
        [*PHRASES, *string.printable],
        gap="",
        pre_tokenizer=pre_tokenizers.Split(Regex(f"{escaped}|[\\s\\S]"), "isolated"),
        decoder=decoders.Fuse(),
    )


def main() -> None:
    """Reads the arguments and writes the tokenizer and random weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer), hidden=arguments.hidden, layers=arguments.layers, seed=arguments.seed)
    tokenizer.save_pretrained(arguments.folder)
    model.save_pretrained(arguments.folder)
    print(f"{arguments.folder}: {sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens")


if __name__ == "__main__":
    main()
