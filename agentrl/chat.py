"""Messages to token ids and back; the only user of the policy's tokenizer.

A conversation only ever grows: the ids of earlier turns are kept as the engine sampled them, and what the template puts
around a new observation is appended. Text from the environment is encoded apart from the template, with special-token
parsing off, so an observation can never smuggle in an end-of-turn.
"""

from collections.abc import Sequence
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from agentrl.errors import ConfigError
from agentrl.trajectory import Message

_MARK = "\u241eCONTENT{}\u241e"


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """Gives the tokenizer of a model; it must have a chat template.

    Raises:
        ConfigError: it has none.
    """
    tokenizer = AutoTokenizer.from_pretrained(path)
    if not tokenizer.chat_template:
        raise ConfigError(
            f"{path}: this tokenizer has no chat template; use an instruct model or add chat_template.jinja"
        )
    return tokenizer


class ChatFormat:
    """The chat template of one model, append-only."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        chat = [Message("user", ""), Message("assistant", ""), Message("user", "")]
        between, after = self._pieces(chat, cue=True)[2:]
        self._close_and_open = self._encode(between)
        self._reply = self._encode(after)
        self.end_id = self._close_and_open[0]
        """The token that ends the policy's turn."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens at which sampling stops: the end of the turn and the end of the text."""
        end_of_text = self.tokenizer.eos_token_id
        return frozenset({self.end_id, end_of_text} if isinstance(end_of_text, int) else {self.end_id})

    def start(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Gives the ids of a fresh prompt, up to and including the policy's cue to speak."""
        return self._ids(messages, cue=True)

    def whole(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Gives the ids of a conversation that ends with an answer, as a reward model reads it."""
        return self._ids(messages, cue=False)

    def extend(self, ids: tuple[int, ...], observation: Message) -> tuple[int, ...]:
        """Gives `ids`, which end with the policy's answer, followed by the observation and the next cue to speak.

        An answer that was cut by the token limit is closed first; that token is the template's, not the policy's.
        """
        closed = 1 if ids[-1] == self.end_id else 0
        return ids + self._close_and_open[closed:] + self._encode_content(observation.content) + self._reply

    def answer(self, text: str) -> tuple[int, ...]:
        """Gives the ids of an answer as the policy would have to sample them, its end included."""
        return (*self._encode_content(text), self.end_id)

    def decode(self, ids: Sequence[int]) -> str:
        """Gives the text of sampled ids, without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def _ids(self, messages: Sequence[Message], *, cue: bool) -> tuple[int, ...]:
        pieces = self._pieces(messages, cue=cue)
        ids = self._encode(pieces[0])
        for message, piece in zip(messages, pieces[1:], strict=True):
            ids += self._encode_content(message.content) + self._encode(piece)
        return ids

    def _pieces(self, messages: Sequence[Message], *, cue: bool) -> list[str]:
        """Gives what the template writes before, between and after the contents, the cue to speak included if asked."""
        marks = [_MARK.format(i) for i in range(len(messages))]
        marked = [{"role": message.role, "content": mark} for message, mark in zip(messages, marks, strict=True)]
        text = str(self.tokenizer.apply_chat_template(marked, tokenize=False, add_generation_prompt=cue))
        pieces: list[str] = []
        for mark in marks:
            before, found, text = text.partition(mark)
            if not found:
                raise ConfigError(
                    f"the chat template of {self.tokenizer.name_or_path} drops or changes a message's text"
                )
            pieces.append(before)
        return [*pieces, text]

    def _encode(self, template_text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(template_text, add_special_tokens=False))

    def _encode_content(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))
