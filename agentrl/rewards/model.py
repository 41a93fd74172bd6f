"""A Bradley-Terry reward model as a source of rewards: any Hugging Face sequence classifier with one logit.

    P(answer w is preferred to answer l) = sigmoid(r_w - r_l)        so r is the logit, up to a constant

It reads the conversation as its own chat template writes it, the environment's texts as the user's and the policy's
whole answers as the assistant's; without a template, line by line. What the policy's prompt file says is not in it.

Letters: B conversations, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from agentrl.chat import ChatFormat
from agentrl.errors import ConfigError
from agentrl.rewards._base import RawReward, paid_turns
from agentrl.trajectory import Message, Trajectory


@dataclass(frozen=True)
class Reading:
    """A conversation as the reward model reads it."""

    ids: tuple[int, ...]
    truncated: bool
    """Whether its beginning had to be left out."""


class RewardModel:
    """Pays what the model gives for the conversation: the whole one, or up to each turn with `per_turn`."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        per_turn: bool = False,
        batch_tokens: int = 16384,
    ) -> None:
        """Takes the model and its tokenizer; `batch_tokens` are the padded tokens of one forward pass."""
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.per_turn = per_turn
        self.batch_tokens = batch_tokens
        self._chat = ChatFormat(tokenizer) if tokenizer.chat_template else None
        config: Any = model.config.get_text_config()
        self._pad: int | None = config.pad_token_id
        positions = getattr(config, "max_position_embeddings", None)  # models without learned positions have none
        self.max_tokens = min(tokenizer.model_max_length, positions or tokenizer.model_max_length)
        """The longest conversation that the model reads; of longer ones it reads the end."""
        tokenizer.truncation_side = "left"

    @classmethod
    def load(cls, path: str | Path, *, device: torch.device, per_turn: bool, batch_tokens: int) -> "RewardModel":
        """Reads a folder or a hub id, its weights in float32.

        Raises:
            ConfigError: there is none, it has no trained head, or its head gives more than one number.
        """
        try:
            tokenizer = AutoTokenizer.from_pretrained(path)
            model, told = AutoModelForSequenceClassification.from_pretrained(
                path, dtype=torch.float32, output_loading_info=True
            )
        except (OSError, ValueError) as error:
            raise ConfigError(f"reward.path: cannot load {str(path)!r}: {error}") from error
        if model.config.num_labels != 1:
            problem = f"{path} gives {model.config.num_labels} numbers for a text"
            raise ConfigError(f"reward.path: {problem}; take a sequence classifier with one, num_labels: 1")
        if told["missing_keys"]:
            problem = f"{path} lacks the weights {', '.join(sorted(told['missing_keys']))}"
            raise ConfigError(f"reward.path: {problem}; take a reward model that has been trained as one")
        return cls(model.to(device), tokenizer, per_turn=per_turn, batch_tokens=batch_tokens)

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[dict[int, RawReward]]:
        """Gives the logit of each conversation."""
        asked = [
            (place, turn) for place, one in enumerate(trajectories) for turn in paid_turns(one, per_turn=self.per_turn)
        ]
        readings = [self.read(conversation(trajectories[place], turn)) for place, turn in asked]
        found: list[dict[int, RawReward]] = [{} for _ in trajectories]
        logits = self.logits([reading.ids for reading in readings])
        for (place, turn), reading, logit in zip(asked, readings, logits.tolist(), strict=True):
            found[place][turn] = RawReward(logit, reading.truncated)
        return found

    def read(self, messages: Sequence[Message]) -> Reading:
        """Gives the token ids of a conversation, at most `max_tokens` of its end."""
        if self._chat is not None:
            ids = self._chat.whole(messages)
            return Reading(ids[-self.max_tokens :], len(ids) > self.max_tokens)
        text = "\n".join(message.content for message in messages)
        spelled: dict[str, Any] = {"split_special_tokens": True, "verbose": False}  # texts must not smuggle in an end
        ids = tuple(self.tokenizer(text, **spelled)["input_ids"])
        if len(ids) <= self.max_tokens:
            return Reading(ids, False)
        # cut by the tokenizer, which keeps the special tokens that it puts around
        cut = self.tokenizer(text, truncation=True, max_length=self.max_tokens, **spelled)["input_ids"]
        return Reading(tuple(cut), True)

    @torch.no_grad()
    def logits(self, rows: Sequence[tuple[int, ...]]) -> Float[Tensor, " B"]:
        """Gives the model's number for each row of token ids, on the CPU; rows of like length go through together."""
        out = torch.zeros(len(rows))
        for part in self._batches(rows):
            width = max(len(rows[i]) for i in part)
            ids = torch.full((len(part), width), self._pad or 0)
            mask = torch.zeros((len(part), width), dtype=torch.int64)
            for line, i in enumerate(part):
                ids[line, : len(rows[i])] = torch.tensor(rows[i])
                mask[line, : len(rows[i])] = 1
            device = self.model.device
            found = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits[:, 0]
            out[torch.tensor(part)] = found.float().cpu()
        return out

    def _batches(self, rows: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Gives the numbers of the rows of each forward pass, sorted by length; one row where nothing can pad."""
        batches: list[list[int]] = []
        for i in sorted(range(len(rows)), key=lambda i: len(rows[i])):
            fits = batches and self._pad is not None and (len(batches[-1]) + 1) * len(rows[i]) <= self.batch_tokens
            if fits:
                batches[-1].append(i)
            else:
                batches.append([i])
        return batches


def conversation(trajectory: Trajectory, last: int) -> list[Message]:
    """Gives the turns up to number `last` as a chat."""
    turns = trajectory.turns[: last + 1]
    return [
        message for turn in turns for message in (Message("user", turn.observation), Message("assistant", turn.action))
    ]
