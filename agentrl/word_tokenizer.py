"""Tokenizers of models so small that each word of their world is a token: `<obs> text <act> text<eot><obs> ...`."""

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<pad>", "<unk>", "<obs>", "<act>", "<eot>")
"""Tokens of special meaning, which come first."""


def word_tokenizer(words: Sequence[str], *, gap: str = " ", **parts: Any) -> PreTrainedTokenizerFast:
    """Gives a tokenizer whose tokens are SPECIAL and these words, between spaces in the text.

    Args:
        words: The tokens, in the order of their ids.
        gap: What stands between a role's token and its text.
        parts: Parts of the tokenizers library that are used instead: normalizer, pre_tokenizer, decoder.
    """
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    for name, part in {"pre_tokenizer": pre_tokenizers.WhitespaceSplit(), **parts}.items():
        setattr(backend, name, part)
    return chat_tokenizer(backend, gap=gap)


def chat_tokenizer(backend: Tokenizer, *, gap: str = " ") -> PreTrainedTokenizerFast:
    """Gives a tokenizer with a chat template, of tokens among which those of SPECIAL are."""
    text = gap + "{{ message.content }}"
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<eot>",
        additional_special_tokens=["<obs>", "<act>"],
        clean_up_tokenization_spaces=False,
        chat_template=(
            "{% for message in messages %}"
            f"{{% if message.role == 'assistant' %}}<act>{text}<eot>{{% else %}}<obs>{text}{{% endif %}}"
            "{% endfor %}{% if add_generation_prompt %}<act>{% endif %}"
        ),
    )
