"""Prompts as files: what the policy is told, how much it remembers, and where its action stands in its answer.

A prompt is a Markdown file under `prompts/`. Its front matter sets `history` (`append`: one growing conversation;
`window`: every turn is a fresh prompt with the last `window_turns` turns) and `answer` (`text`: the whole answer is
the action; `tag`: the text inside `<action>...</action>`; `steps`: lines, of which those that start with `think:` are
thoughts and the first that starts with `act:`, or else the first other one, is the action). Its sections `## system`,
`## first` and `## turn` hold text with {observation}, {task}, {admissible_actions}, {history}, {turn} and {num_played};
`## first` is `## turn` when absent.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from agentrl.errors import ConfigError
from agentrl.trajectory import Message, Turn

_PLACEHOLDER = re.compile(r"\{(observation|task|admissible_actions|history|turn|num_played)\}")
_SECTION = re.compile(r"^## (system|first|turn)\n(.*?)(?=^## (?:system|first|turn)\n|\Z)", re.M | re.S)
_ACTION = re.compile(r"<action>(.*?)</action>", re.S | re.I)
_THOUGHT = re.compile(r"^[\s>]*(?:think|thought)\s*\d*(?:\s*:|(?=\s*\[))[ \t]*(.*)$", re.M | re.I)
_STEP = re.compile(r"^[\s>]*act(?:ion)?\s*\d*\s*:[ \t]*(.*\S)", re.M | re.I)
_OTHER = re.compile(r"^[\s>]*(.*\S)", re.M)


class _Settings(BaseModel):
    """The front matter of a prompt file."""

    model_config = ConfigDict(extra="forbid")

    history: Literal["append", "window"] = "append"
    window_turns: PositiveInt = 2
    answer: Literal["text", "tag", "steps"] = "text"


@dataclass(frozen=True)
class Prompt:
    """How observations become messages and how answers become actions; the default shows the observation as it is."""

    name: str = "none"
    system: str = ""
    first: str = "{observation}"
    turn: str = "{observation}"
    history: Literal["append", "window"] = "append"
    window_turns: int = 2
    answer: Literal["text", "tag", "steps"] = "text"

    @classmethod
    def load(cls, path: Path) -> "Prompt":
        """Reads a prompt file.

        Raises:
            ConfigError: the file has wrong settings or no `## turn` section.
        """
        text = path.read_text(encoding="utf-8")
        front, body = "", text
        if text.startswith("---\n"):
            front, _, body = text.removeprefix("---\n").partition("\n---\n")
        try:
            settings = _Settings.model_validate(yaml.safe_load(front) or {})
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}, not {one['input']!r}" for one in error.errors()
            )
            raise ConfigError(f"{path}: front matter: {problems}") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: front matter: {error}") from error
        sections = {name: content.strip() for name, content in _SECTION.findall(body)}
        if "turn" not in sections:
            raise ConfigError(f"{path}: no '## turn' section; see prompts/alfworld/chat.md for an example")
        sections.setdefault("first", sections["turn"])
        return cls(name=path.stem, **sections, **settings.model_dump())

    def opening(self, played: Sequence[Turn], observation: str, info: Mapping[str, Any]) -> list[Message]:
        """Gives the messages of a fresh prompt: the system's, if any, and the user's."""
        template = self.turn if played else self.first
        messages = [Message("system", self.system)] if self.system else []
        return [*messages, Message("user", self._fill(template, played, observation, info))]

    def following(self, played: Sequence[Turn], observation: str, info: Mapping[str, Any]) -> Message:
        """Gives the message that a growing conversation continues with."""
        return Message("user", self._fill(self.turn, played, observation, info))

    def action(self, answer: str) -> str | None:
        """Gives the action inside a policy's answer, or None when the answer has not the asked-for form."""
        match self.answer:
            case "text":
                return answer.strip()
            case "tag":
                found = _ACTION.search(answer)
            case "steps":
                found = _STEP.search(answer) or _OTHER.search(_THOUGHT.sub("", answer))
        return found[1].strip() if found else None

    def thoughts(self, answer: str) -> list[str]:
        """Gives the thoughts inside an answer of `steps`, which no environment gets to hear."""
        found = _THOUGHT.findall(answer) if self.answer == "steps" else []
        return [thought.strip().removeprefix("[").removesuffix("]") for thought in found]

    def answer_with(self, action: str) -> str:
        """Gives an answer in the asked-for form that holds just the action: what a demonstration says."""
        return {"text": action, "tag": f"<action>{action}</action>", "steps": f"act: {action}"}[self.answer]

    def _fill(self, template: str, played: Sequence[Turn], observation: str, info: Mapping[str, Any]) -> str:
        def value(match: re.Match[str]) -> str:
            match match[1]:
                case "observation":
                    return observation
                case "history":
                    return self._recent(played)
                case "turn":
                    return str(len(played) + 1)
                case "num_played":
                    return str(len(played))
                case "admissible_actions" if "admissible_actions" in info:
                    return "\n".join(action for action in info["admissible_actions"] if action != "help")
                case "task" if "task" in info:
                    return str(info["task"])
                case missing:
                    raise ConfigError(f"prompt {self.name!r} uses {{{missing}}}, but this environment's info has none")

        return _PLACEHOLDER.sub(value, template)

    def _recent(self, played: Sequence[Turn]) -> str:
        start = max(0, len(played) - self.window_turns)
        return "\n".join(
            f"Observation {number}: {turn.observation}\nAction {number}: {self.action(turn.action) or turn.action}"
            for number, turn in enumerate(played[start:], start + 1)
        )
