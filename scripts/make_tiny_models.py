"""Writes the tiny ALFWorld policy before it has learned anything, and ships what has been made of it.

    python scripts/make_tiny_models.py new runs/tiny_init
    agentrl sft alfworld/tiny_sft --set model.path=runs/tiny_init
    python scripts/make_tiny_models.py ship runs/latest/checkpoints/step_002500 configs/models/tiny-alfworld

`new` makes a word-level tokenizer and random weights; `ship` keeps a checkpoint's weights in bfloat16.

`tiny_words.txt` holds every word of ALFWorld's texts and commands, official and generated games alike. The tokenizer
lowers its text and drops punctuation and the words a, an, the and and, which carry nothing here and double the length.
"""

import argparse
from pathlib import Path

import torch
from tokenizers import Regex, normalizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from agentrl.word_tokenizer import SPECIAL, word_tokenizer


def make_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    """Gives a tokenizer whose tokens are the words, and whose chat is `<obs> text <act> action <eot> <obs> ...`."""
    return word_tokenizer(
        words,
        normalizer=normalizers.Sequence(
            [
                normalizers.Lowercase(),
                normalizers.Replace(Regex(r"[^a-z0-9]"), " "),
                normalizers.Replace(Regex(r"\b(a|an|the|and)\b"), " "),
            ]
        ),
    )


def make_model(num_words: int, *, hidden: int, layers: int, seed: int) -> LlamaForCausalLM:
    """Gives a model with random weights.

    Llama and not Qwen2: transformers 5 takes Qwen2's own BPE for any tokenizer it finds in a Qwen2 folder.
    """
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=num_words,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=SPECIAL.index("<eot>"),
        pad_token_id=SPECIAL.index("<pad>"),
    )
    return LlamaForCausalLM(config)


def new(arguments: argparse.Namespace) -> None:
    """Writes the tokenizer and random weights."""
    words = (Path(__file__).parent / "tiny_words.txt").read_text().split()
    tokenizer = make_tokenizer(words)
    model = make_model(len(tokenizer), hidden=arguments.hidden, layers=arguments.layers, seed=arguments.seed)
    tokenizer.save_pretrained(arguments.folder)
    model.save_pretrained(arguments.folder)
    print(f"{arguments.folder}: {sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens")


def ship(arguments: argparse.Namespace) -> None:
    """Writes a checkpoint's model and tokenizer, and nothing that only training needs."""
    model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=torch.bfloat16)
    model.save_pretrained(arguments.folder)
    AutoTokenizer.from_pretrained(arguments.checkpoint).save_pretrained(arguments.folder)
    print(f"{arguments.folder}: {sum(file.stat().st_size for file in arguments.folder.iterdir()):,} bytes")


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("new", help="a tokenizer and random weights")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--hidden", type=int, default=128)
    verb.add_argument("--layers", type=int, default=4)
    verb.add_argument("--seed", type=int, default=0)
    verb.set_defaults(run=new)
    verb = verbs.add_parser("ship", help="a checkpoint in bfloat16")
    verb.add_argument("checkpoint", type=Path)
    verb.add_argument("folder", type=Path)
    verb.set_defaults(run=ship)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
