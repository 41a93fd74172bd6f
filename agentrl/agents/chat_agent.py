"""A prompted model as a player of episodes: direct, or ReAct, which thinks in words before it acts.

ReAct: Yao et al., 2023, arXiv:2210.03629. As in its ALFWorld prompts a thought is a step of its own, which the
environment never gets to hear and which is answered with "OK."; a thought and an action may also come in one answer.
Where the paper counts a thought as one of the 50 steps of an episode, we allow a number of them before each action.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentrl.agents.conversation import USAGE, Conversation, Model
from agentrl.prompts import Prompt
from agentrl.rollout import Player
from agentrl.trajectory import Message, Turn

_SEED_STRIDE = 0xBF58476D
HEARD = Message("user", "OK.")
"""What a thought is answered with."""


@dataclass(frozen=True)
class ChatAgent:
    """Plays with a model that is told what to do by a prompt."""

    model: Model
    prompt: Prompt
    max_thoughts: int = 3
    """Answers in a row that may hold a thought and no action, where the prompt's answers are `steps`; the next one has
    to act, or the turn is lost: the environment gets an empty answer, which counts as `format_invalid`."""
    memory: Mapping[int, str] = field(default_factory=dict)
    """What the player of an episode remembers of earlier ones, by the episode's seed; it ends the system's message."""

    def player(self, seed: int) -> Player:
        """Gives the player of one episode."""
        return _ChatPlayer(self, self.memory.get(seed, ""))

    def remembering(self, memory: Mapping[int, str]) -> "ChatAgent":
        """Gives the same agent with other memories."""
        return replace(self, memory=memory)


class _ChatPlayer:
    def __init__(self, agent: ChatAgent, memory: str) -> None:
        self._model = agent.model
        self._max_thoughts = agent.max_thoughts
        system = "\n\n".join(filter(None, (agent.prompt.system, memory)))
        self._prompt = replace(agent.prompt, system=system)
        self._conversation: Conversation | None = None

    async def act(
        self, played: Sequence[Turn], observation: str, info: Mapping[str, Any], *, seed: int
    ) -> tuple[Turn, str | None]:
        conversation = self._hear(played, observation, info)
        calls = [await conversation.answer(seed=seed)]
        while self._only_thinks(calls[-1]) and len(calls) <= self._max_thoughts:
            conversation.say(HEARD)
            calls.append(await conversation.answer(seed=seed + len(calls) * _SEED_STRIDE))
        about = _usage(calls)
        if thoughts := [thought for call in calls for thought in self._prompt.thoughts(call.action)]:
            about["thoughts"] = thoughts
        action = self._prompt.action(calls[-1].action)
        text = "" if action is None and thoughts else calls[-1].action  # the environment must not hear a thought
        return replace(calls[-1], observation=observation, action=text, info=about), action

    def _hear(self, played: Sequence[Turn], observation: str, info: Mapping[str, Any]) -> Conversation:
        if self._conversation is None or self._prompt.history == "window":
            self._conversation = self._model.open(self._prompt.opening(played, observation, info))
        else:
            self._conversation.say(self._prompt.following(played, observation, info))
        return self._conversation

    def _only_thinks(self, call: Turn) -> bool:
        return self._prompt.action(call.action) is None and bool(self._prompt.thoughts(call.action))


def _usage(calls: Sequence[Turn]) -> dict[str, Any]:
    """Gives how many tokens calls took together, as far as it is known."""
    return {key: sum(call.info.get(key, 0) for call in calls) for key in USAGE if any(key in c.info for c in calls)}
