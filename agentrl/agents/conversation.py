"""What a prompted agent talks to: a model that opens conversations and answers in them, whatever it runs on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentrl.chat import ChatFormat
from agentrl.engines._base import RolloutEngine, SamplingParams
from agentrl.rollout import ContextFull
from agentrl.trajectory import Message, Turn

USAGE = ("prompt_tokens", "cached_tokens", "action_tokens")
"""Keys of `Turn.info` that count tokens: read, of these known from an earlier request, and sampled."""


class Conversation(Protocol):
    """A conversation that only grows."""

    def say(self, message: Message) -> None:
        """Adds a message that the model is to answer next."""
        ...

    async def answer(self, *, seed: int) -> Turn:
        """Gives the model's answer, which joins the conversation, as a turn without observation.

        Its `info` has the counts of USAGE that are known.

        Raises:
            ContextFull: there is no room for another answer.
        """
        ...


class Model(Protocol):
    """Something that can be talked to, many conversations at a time."""

    def open(self, messages: Sequence[Message]) -> Conversation:
        """Starts a conversation with messages that are to be answered."""
        ...


@dataclass(frozen=True)
class EngineModel:
    """A model in an engine of ours: what it said stays in the conversation as the very tokens that were sampled."""

    engine: RolloutEngine
    chat: ChatFormat
    params: SamplingParams
    context_tokens: int
    """The most tokens of a conversation and the next answer together."""

    def open(self, messages: Sequence[Message]) -> Conversation:
        """Starts a conversation."""
        return _EngineConversation(self, self.chat.start(messages))


class _EngineConversation:
    def __init__(self, model: EngineModel, ids: tuple[int, ...]) -> None:
        self._model = model
        self._ids = ids

    def say(self, message: Message) -> None:
        self._ids = self._model.chat.extend(self._ids, message)

    async def answer(self, *, seed: int) -> Turn:
        model, prompt_ids = self._model, self._ids
        if len(prompt_ids) + model.params.max_tokens > model.context_tokens:
            raise ContextFull
        completion = await model.engine.generate(prompt_ids, model.params, seed=seed)
        self._ids = prompt_ids + completion.ids
        return Turn(
            prompt_ids=prompt_ids,
            action_ids=completion.ids,
            action_logprobs=completion.logprobs,
            observation="",
            action=model.chat.decode(completion.ids),
            stopped=completion.stopped,
            policy_version=completion.version,
            info={"prompt_tokens": len(prompt_ids), "action_tokens": len(completion.ids)},
        )
