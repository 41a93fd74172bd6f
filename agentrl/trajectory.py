"""What one episode leaves behind, in plain Python: messages, turns, trajectories.

A turn is one call of the policy and the environment's answer. Its ids are the engine's own: they are stored as
sampled, never decoded and encoded again, so the tokens that are trained are the tokens that were sampled.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, as chat templates see it."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of the policy and what came of it.

    Example: prompt_ids (5, 8, 2), action_ids (11, 4), action_logprobs (-0.1, -0.7), observation "I think of a digit.",
    action "4", reward 0.0, stopped "stop". Policies that are not language models leave the ids empty.
    """

    prompt_ids: tuple[int, ...]
    """Everything the policy read before this action, earlier turns included. [L_p]"""
    action_ids: tuple[int, ...]
    """The tokens the policy sampled, the end-of-turn token included. [L_a]"""
    action_logprobs: tuple[float, ...]
    """Log-probability of each sampled token at the sampling temperature, in nats. [L_a]"""
    observation: str
    """The environment's text that the policy answered."""
    action: str
    """The policy's whole text, decoded from `action_ids`."""
    reward: float = 0.0
    """What the environment, or who judged the episode, paid for this action."""
    stopped: Literal["stop", "length"] = "stop"
    """Whether the policy ended its turn itself or ran into the token limit."""
    policy_version: int = 0
    """How many updates the weights that sampled this turn had seen."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """The environment's flags after the action, success, inadmissible, format_invalid ..., and what a scorer noted."""
    reports: Mapping[str, bool | float] = field(default_factory=dict)
    """The environment's own flags and numbers of this turn, as its `TextEnv.reports` names them."""


class Ending(StrEnum):
    """Why an episode stopped."""

    TERMINATED = "terminated"
    MAX_TURNS = "max_turns"
    CONTEXT_FULL = "context_full"
    ENV_ERROR = "env_error"
    TIMEOUT = "timeout"

    @property
    def trainable(self) -> bool:
        """Whether the outcome says something about the policy: broken environments do not."""
        return self not in (Ending.ENV_ERROR, Ending.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Segment:
    """One row of a batch: a token sequence in which every prompt starts with all that came before it."""

    ids: tuple[int, ...]
    """Prompt, action and environment tokens in order. [T]"""
    action_mask: tuple[bool, ...]
    """Which tokens the policy sampled. [T]"""
    logprobs: tuple[float, ...]
    """Sampling log-probability, 0 off the mask, in nats. [T]"""
    turns: tuple[int, ...]
    """Turn number of each sampled token, -1 off the mask. [T]"""
    rewards: tuple[float, ...]
    """A turn's reward on its last sampled token, 0 elsewhere. [T]"""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of one episode."""

    env_id: str
    task_id: str
    seed: int
    """The seed of the episode: the environment's and, with the turn number, the sampler's."""
    group: int
    """Trajectories of one group answer the same task in the same step."""
    turns: tuple[Turn, ...]
    ending: Ending
    info: Mapping[str, Any] = field(default_factory=dict)
    """What reset told about the episode, such as `task_type`; `error` when the environment broke."""

    @property
    def episode_return(self) -> float:
        """The undiscounted sum of rewards."""
        return math.fsum(turn.reward for turn in self.turns)

    @property
    def success(self) -> bool:
        """What the environment last said about success; where it never speaks of it, a positive return."""
        for turn in reversed(self.turns):
            if "success" in turn.info:
                return bool(turn.info["success"])
        return self.episode_return > 0

    @property
    def num_action_tokens(self) -> int:
        """How many tokens the policy sampled."""
        return sum(len(turn.action_ids) for turn in self.turns)

    @property
    def truncated(self) -> bool:
        """Whether a limit on tokens cut the episode off: its last turn was not ended, or its context was full."""
        unended = bool(self.turns) and self.turns[-1].stopped == "length"
        return self.ending == Ending.CONTEXT_FULL or unended

    def segments(self) -> Iterator[Segment]:
        """Gives the rows of this trajectory: turns merge while each prompt starts with everything before it.

        A growing chat is one row; a prompt that is rewritten every turn is one row a turn.
        """
        row: list[tuple[int, Turn]] = []
        ids: tuple[int, ...] = ()
        for number, turn in enumerate(self.turns):
            if row and turn.prompt_ids[: len(ids)] != ids:
                yield _segment(row)
                row = []
            row.append((number, turn))
            ids = turn.prompt_ids + turn.action_ids
        if row:
            yield _segment(row)

    def to_dict(self) -> dict[str, Any]:
        """Gives the trajectory as a JSON object, one line of a rollout file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote."""
        turns: list[dict[str, Any]] = [
            {key: tuple(value) if isinstance(value, list) else value for key, value in turn.items()}
            for turn in record["turns"]
        ]
        return cls(**{**record, "turns": tuple(Turn(**turn) for turn in turns), "ending": Ending(record["ending"])})


def _segment(row: list[tuple[int, Turn]]) -> Segment:
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    turns: list[int] = []
    rewards: list[float] = []

    def extend(tokens: tuple[int, ...], values: tuple[float, ...], turn: int) -> None:
        ids.extend(tokens)
        mask.extend([turn >= 0] * len(tokens))
        logprobs.extend(values)
        turns.extend([turn] * len(tokens))
        rewards.extend([0.0] * len(tokens))

    for number, turn in row:
        context = turn.prompt_ids[len(ids) :]
        extend(context, (0.0,) * len(context), -1)
        extend(turn.action_ids, turn.action_logprobs, number)
        if turn.action_ids:
            rewards[-1] += turn.reward
    return Segment(tuple(ids), tuple(mask), tuple(logprobs), tuple(turns), tuple(rewards))
