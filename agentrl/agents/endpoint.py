"""A model behind a URL: any server with OpenAI's chat completions, such as vLLM, SGLang, llama.cpp or a paid one."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from agentrl.agents.chat_client import ChatClient, TooLong
from agentrl.agents.conversation import Conversation
from agentrl.errors import EndpointError
from agentrl.rollout import ContextFull
from agentrl.trajectory import Message, Turn

_SEEDS = 2**31


@dataclass(frozen=True)
class ChatParams:
    """What is asked of the server beside the messages."""

    model: str
    """The server's name of the model."""
    temperature: float = 1.0
    max_tokens: int = 512
    """The most tokens of an answer."""
    top_p: float = 1.0
    """Smallest share of probability that is sampled from."""
    stop: tuple[str, ...] = ()
    """Texts at which an answer ends."""
    limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the server calls the limit; newer models of OpenAI take the longer name only."""

    def body(self, messages: Sequence[Message], seed: int) -> dict[str, Any]:
        """Gives the request; the seed is cut to the 31 bits that servers take."""
        return {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": self.temperature,
            "top_p": self.top_p,
            self.limit_key: self.max_tokens,
            "seed": seed % _SEEDS,
            **({"stop": list(self.stop)} if self.stop else {}),
        }


class EndpointModel:
    """Talks to the server, `concurrency` requests at a time. Answers have text and counts of tokens, but no ids."""

    def __init__(self, client: ChatClient, params: ChatParams, *, concurrency: int = 16) -> None:
        self._client = client
        self._params = params
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="endpoint")

    def open(self, messages: Sequence[Message]) -> Conversation:
        """Starts a conversation."""
        return _EndpointConversation(self, list(messages))

    async def ask(self, messages: Sequence[Message], *, seed: int) -> Turn:
        """Gives the answer to messages.

        Raises:
            ContextFull: they do not fit into the model's context.
            EndpointError: the server refuses, fails for good, or answers nonsense.
        """
        body = self._params.body(messages, seed)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._pool, self._client.complete, body)
        except TooLong as error:
            raise ContextFull from error
        try:
            choice = found["choices"][0]
            text, stopped = str(choice["message"]["content"] or ""), choice.get("finish_reason")
        except (KeyError, TypeError, AttributeError) as error:
            raise EndpointError(f"{self._client.url}: an answer without a message: {error!r}") from error
        return Turn(
            prompt_ids=(),
            action_ids=(),
            action_logprobs=(),
            observation="",
            action=text,
            stopped="length" if stopped == "length" else "stop",
            info=_usage(found.get("usage")),
        )


class _EndpointConversation:
    def __init__(self, model: EndpointModel, messages: list[Message]) -> None:
        self._model = model
        self._messages = messages

    def say(self, message: Message) -> None:
        self._messages.append(message)

    async def answer(self, *, seed: int) -> Turn:
        turn = await self._model.ask(self._messages, seed=seed)
        self._messages.append(Message("assistant", turn.action))
        return turn


def _usage(told: Mapping[str, Any] | None) -> dict[str, int]:
    """Gives the counts of tokens that a server tells; servers leave out what they do not know."""
    told = told or {}
    details = told.get("prompt_tokens_details") or {}
    found = {
        "prompt_tokens": told.get("prompt_tokens"),
        "cached_tokens": details.get("cached_tokens"),
        "action_tokens": told.get("completion_tokens"),
    }
    return {key: int(value) for key, value in found.items() if value is not None}
