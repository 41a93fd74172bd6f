"""Reflexion: play, put into words why it failed, play again with that in mind (Shinn et al., 2023, arXiv:2303.11366).

The outcome that a reflection is about is the environment's own success, as in the paper's ALFWorld and WebShop trials.
Where the paper also cuts an episode off when it repeats itself, ours goes to its limit of turns.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrl.agents.chat_agent import ChatAgent
from agentrl.agents.conversation import USAGE
from agentrl.errors import ConfigError
from agentrl.prompts import Prompt
from agentrl.rollout import Agent, Collector, ContextFull
from agentrl.tasks import Task
from agentrl.trajectory import Message, Trajectory, Turn

OnFinished = Callable[[Task, Trajectory], None]
"""Hears of a task and its episode when it is over."""
_SECTION = re.compile(r"^## (system|reflect|memory)\n(.*?)(?=^## (?:system|reflect|memory)\n|\Z)", re.M | re.S)
_TRIAL_STRIDE = 0x94D049BB133111EB
_SEEDS = 2**62


@dataclass(frozen=True)
class ReflexionPrompt:
    """How a model is asked why it failed, and how it is told what it answered then."""

    system: str
    reflect: str
    """Holds {transcript} and may hold {task}."""
    memory: str
    """Holds {reflections}."""

    @classmethod
    def load(cls, path: Path) -> "ReflexionPrompt":
        """Reads a prompt file with the sections `## system`, `## reflect` and `## memory`.

        Raises:
            ConfigError: a section is missing, or does not hold its placeholder.
        """
        sections = {name: content.strip() for name, content in _SECTION.findall(path.read_text(encoding="utf-8"))}
        for name, placeholder in (("system", ""), ("reflect", "{transcript}"), ("memory", "{reflections}")):
            if name not in sections or placeholder not in sections[name]:
                example = "see prompts/alfworld/reflexion.md for an example"
                raise ConfigError(
                    f"{path}: no '## {name}' section{f' with {placeholder}' * bool(placeholder)}; {example}"
                )
        return cls(**sections)

    def asked(self, task: str, transcript: str) -> list[Message]:
        """Gives the messages that ask for a reflection."""
        filled = {"{task}": task, "{transcript}": transcript}
        text = re.sub(r"\{task\}|\{transcript\}", lambda found: filled[found[0]], self.reflect)
        return [Message("system", self.system), Message("user", text)]

    def remembered(self, reflections: Sequence[str]) -> str:
        """Gives what a player is told of earlier trials; nothing before the second."""
        listed = "\n".join(f"- {text}" for text in reflections)
        return self.memory.replace("{reflections}", listed) if reflections else ""


@dataclass(eq=False)
class _Attempts:
    """What is known of one task so far."""

    task: Task
    trajectory: Trajectory | None = None
    trials: int = 0
    reflections: tuple[str, ...] = ()
    usage: dict[str, int] = field(default_factory=dict)

    @property
    def goes_on(self) -> bool:
        """Whether another trial would tell anything: it failed, and not because the environment broke."""
        assert self.trajectory is not None, "a trial was played"
        return self.trajectory.ending.trainable and not self.trajectory.success

    def result(self) -> Trajectory:
        """Gives the last trial and what is known of all."""
        assert self.trajectory is not None, "every task is played at least once"
        about: dict[str, Any] = {
            **self.trajectory.info,
            "trials": self.trials,
            "reflections": list(self.reflections),
            "first_success": self.trials == 1 and self.trajectory.success,
            "usage": self.usage,
        }
        return replace(self.trajectory, seed=self.task.seed, info=about)

    def spend(self, calls: Sequence[Turn]) -> None:
        """Counts the tokens of calls."""
        for call in calls:
            for key in call.info.keys() & set(USAGE):
                self.usage[key] = self.usage.get(key, 0) + call.info[key]


class Reflexion:
    """Plays tasks as a Collector does, in up to `trials` trials each, with the last `memory` reflections in mind.

    What it gives is each task's last trial. Its `info` has `trials`, how many there were; `reflections`, all of them in
    order; `first_success`, whether the first trial won; and `usage`, the tokens of all trials and reflections.
    """

    def __init__(self, collector: Collector, prompt: ReflexionPrompt, *, trials: int = 3, memory: int = 3) -> None:
        self._collector = collector
        self._prompt = prompt
        self._trials = trials
        self._memory = memory

    def play(self, agent: Agent, tasks: Sequence[Task], *, on_finished: OnFinished | None = None) -> list[Trajectory]:
        """Gives the trajectory of the last trial of each task, in the order of the tasks, under the task's own seed.

        The first trial is what the agent, a ChatAgent, would do without Reflexion; later ones have seeds of their own.
        `on_finished` hears of each task as soon as the trial is over that was its last.
        """
        assert isinstance(agent, ChatAgent), "only a ChatAgent can be told what to remember"
        attempts = [_Attempts(task) for task in tasks]
        going = attempts
        for trial in range(self._trials):
            if trial:
                asyncio.run(self._reflect(agent, going))
            self._try(agent, going, trial=trial, on_finished=on_finished)
            going = [one for one in going if one.goes_on]
            if not going:
                break
        return [one.result() for one in attempts]

    def close(self) -> None:
        """Closes the environments."""
        self._collector.close()

    def _try(self, agent: ChatAgent, going: Sequence[_Attempts], *, trial: int, on_finished: OnFinished | None) -> None:
        """Plays one trial of each task that goes on."""
        chosen = {replace(one.task, seed=_trial_seed(one.task.seed, trial)): one for one in going}
        memories = {
            task.seed: self._prompt.remembered(one.reflections[-self._memory :]) for task, one in chosen.items()
        }

        def keep(task: Task, played: Trajectory) -> None:
            one = chosen[task]
            one.trajectory, one.trials = played, trial + 1
            one.spend(played.turns)
            if on_finished and (one.trials == self._trials or not one.goes_on):
                on_finished(one.task, one.result())

        self._collector.play(agent.remembering(memories), list(chosen), on_finished=keep)

    async def _reflect(self, agent: ChatAgent, attempts: Sequence[_Attempts]) -> None:
        answers = await asyncio.gather(*(self._reflection(agent, one) for one in attempts))
        for one, answer in zip(attempts, answers, strict=True):
            if answer is not None:
                one.spend([answer])
                text = " ".join(answer.action.split())
                one.reflections += (text,) if text else ()

    async def _reflection(self, agent: ChatAgent, attempts: _Attempts) -> Turn | None:
        """Gives what the model says of its last trial; of a long one it reads the end, as much as there is room for."""
        trajectory = attempts.trajectory
        assert trajectory is not None, "a trial comes before its reflection"
        turns = trajectory.turns
        while True:
            asked = self._prompt.asked(str(trajectory.info.get("task", "")), _transcript(agent.prompt, turns))
            try:
                seed = _trial_seed(attempts.task.seed, -attempts.trials)
                return await agent.model.open(asked).answer(seed=seed)
            except ContextFull:
                if not turns:
                    return None
                turns = turns[len(turns) // 2 + 1 :]


def _transcript(prompt: Prompt, turns: Sequence[Turn]) -> str:
    def told(turn: Turn) -> str:
        thoughts = "".join(f"Thought: {thought}\n" for thought in turn.info.get("thoughts", ()))
        action = prompt.action(turn.action)
        return f"Observation: {turn.observation}\n{thoughts}Action: {turn.action if action is None else action}"

    return "\n".join(map(told, turns))


def _trial_seed(seed: int, trial: int) -> int:
    return (seed + trial * _TRIAL_STRIDE) % _SEEDS if trial else seed
