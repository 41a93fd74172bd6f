"""Agents for tests: over a socket, and over an engine in this process."""

from typing import Any

from agentrl.agents.chat_agent import ChatAgent
from agentrl.agents.chat_client import ChatClient
from agentrl.agents.conversation import EngineModel
from agentrl.agents.endpoint import ChatParams, EndpointModel
from agentrl.chat import ChatFormat
from agentrl.engines._base import SamplingParams
from agentrl.prompts import Prompt


def endpoint_agent(url: str, *, prompt: Prompt | None = None, concurrency: int = 4, **params: Any) -> ChatAgent:
    """An agent that asks the server once and never waits."""
    model = EndpointModel(ChatClient(url, max_tries=1), ChatParams("m", **params), concurrency=concurrency)
    return ChatAgent(model, prompt or Prompt())


def engine_agent(chat: ChatFormat, engine: Any, prompt: Prompt, **settings: Any) -> ChatAgent:
    """An agent over an engine of ours."""
    known = {"temperature": 1.0, "max_tokens": 6, "context_tokens": 400, **settings}
    context_tokens = known.pop("context_tokens")
    return ChatAgent(EngineModel(engine, chat, SamplingParams(**known, stop_ids=chat.stop_ids), context_tokens), prompt)
