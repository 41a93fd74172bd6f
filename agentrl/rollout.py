"""Playing episodes: one coroutine each, written as the textbook loop; the engine batches whoever waits."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import gymnasium

from agentrl.chat import ChatFormat
from agentrl.engines._base import RolloutEngine, SamplingParams
from agentrl.env import Actor, CutAction
from agentrl.env_calls import EnvCalls, EnvFailed, in_daemon_thread
from agentrl.env_workers import RemoteEnv
from agentrl.prompts import Prompt
from agentrl.tasks import Task
from agentrl.trajectory import Ending, Trajectory, Turn

log = logging.getLogger(__name__)

_SEED_STRIDE = 0x9E3779B9


class ContextFull(Exception):
    """The next prompt leaves no room for an answer."""


class Player(Protocol):
    """Whoever plays one episode."""

    async def act(
        self, played: Sequence[Turn], observation: str, info: Mapping[str, Any], *, seed: int
    ) -> tuple[Turn, str | None]:
        """Gives the next turn, without its reward, and the action in it (None: not in the asked-for form).

        Raises:
            ContextFull: there is no room for another turn.
        """
        ...


class Agent(Protocol):
    """A language model, an expert, a random player: it sends a player into every episode."""

    def player(self, seed: int) -> Player:
        """Gives the player of one episode."""
        ...


@dataclass(frozen=True)
class Speaker:
    """How a language model is spoken to: its chat template and the prompt."""

    chat: ChatFormat
    prompt: Prompt

    def prompt_ids(self, played: Sequence[Turn], observation: str, info: Mapping[str, Any]) -> tuple[int, ...]:
        """Gives what the policy reads before its next action; earlier turns keep the ids they were sampled with."""
        if self.prompt.history == "window" or not played:
            return self.chat.start(self.prompt.opening(played, observation, info))
        last = played[-1]
        return self.chat.extend(last.prompt_ids + last.action_ids, self.prompt.following(played, observation, info))


@dataclass(frozen=True)
class EngineAgent:
    """A language model that plays through an engine. It remembers nothing between turns, so it is its own player."""

    engine: RolloutEngine
    speaker: Speaker
    params: SamplingParams
    context_tokens: int
    """The most tokens of prompt and answer together."""

    def player(self, seed: int) -> Player:
        """Gives itself."""
        del seed
        return self

    async def act(
        self, played: Sequence[Turn], observation: str, info: Mapping[str, Any], *, seed: int
    ) -> tuple[Turn, str | None]:
        """Samples an answer."""
        prompt_ids = self.speaker.prompt_ids(played, observation, info)
        if len(prompt_ids) + self.params.max_tokens > self.context_tokens:
            raise ContextFull
        completion = await self.engine.generate(prompt_ids, self.params, seed=seed)
        text = self.speaker.chat.decode(completion.ids)
        turn = Turn(
            prompt_ids=prompt_ids,
            action_ids=completion.ids,
            action_logprobs=completion.logprobs,
            observation=observation,
            action=text,
            stopped=completion.stopped,
            policy_version=completion.version,
        )
        return turn, self.speaker.prompt.action(text)


@dataclass(frozen=True)
class ActorAgent:
    """Players that are not language models, one for each episode.

    With a speaker, their turns are written down as a policy would have had to say them: demonstrations to clone.
    """

    make_actor: Callable[[int], Actor]
    speaker: Speaker | None = None

    def player(self, seed: int) -> Player:
        """Gives a new player."""
        return _ActorPlayer(self.make_actor(seed), self.speaker)


@dataclass(frozen=True)
class _ActorPlayer:
    actor: Actor
    speaker: Speaker | None

    async def act(
        self, played: Sequence[Turn], observation: str, info: Mapping[str, Any], *, seed: int
    ) -> tuple[Turn, str | None]:
        """Asks the actor."""
        del seed
        action = self.actor(observation, info)
        if self.speaker is None:
            return Turn((), (), (), observation, action), action
        text = self.speaker.prompt.answer_with(action)
        ids = self.speaker.chat.answer(text)
        prompt_ids = self.speaker.prompt_ids(played, observation, info)
        return Turn(prompt_ids, ids, (0.0,) * len(ids), observation, text), action


@dataclass(frozen=True)
class Deadlines:
    """How long episodes may take; what takes longer ends as a timeout and is not trained on."""

    step_s: float = 300.0
    """A reset or a step of the environment."""
    episode_s: float | None = None
    """An episode, the sampling of its turns included; None: as long as it takes."""


class Collector:
    """Plays tasks with an agent, `concurrency` at a time, in environments that are kept from call to call."""

    def __init__(
        self,
        make_env: Callable[[], gymnasium.Env[str, str]],
        *,
        env_id: str,
        concurrency: int,
        deadlines: Deadlines = Deadlines(),
    ) -> None:
        self._make_env = make_env
        self._env_id = env_id
        self._concurrency = concurrency
        self._deadlines = deadlines
        self._envs: list[gymnasium.Env[str, str]] = []

    def play(
        self, agent: Agent, tasks: Sequence[Task], *, on_finished: Callable[[Task, Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Gives one trajectory per task, in the order of the tasks; `on_finished` hears of each when it is over."""
        while len(self._envs) < min(self._concurrency, len(tasks)):
            self._envs.append(self._make_env())
        played = asyncio.run(self._play_all(agent, tasks, on_finished))
        failed = [trajectory for trajectory in played if not trajectory.ending.trainable]
        if failed:
            first = failed[0]
            log.warning(
                "%d of %d episodes failed or took too long and are not trained on; the first, %s: %s",
                *(len(failed), len(played), first.task_id, first.info["error"]),
            )
        return played

    def close(self) -> None:
        """Closes the environments."""
        for env in self._envs:
            env.close()
        self._envs.clear()

    async def _replace(self, number: int) -> None:
        env = self._envs[number]
        if not isinstance(env, RemoteEnv):
            self._envs[number] = self._make_env()
            return

        def remade() -> gymnasium.Env[str, str]:
            env.abandon()
            return self._make_env()

        # In a thread: it waits for workers, and only the loop sees that another environment hangs in one.
        self._envs[number] = await asyncio.wrap_future(in_daemon_thread(remade))

    async def _play_all(
        self, agent: Agent, tasks: Sequence[Task], on_finished: Callable[[Task, Trajectory], None] | None
    ) -> list[Trajectory]:
        free: asyncio.Queue[int] = asyncio.Queue()
        for number in range(len(self._envs)):
            free.put_nowait(number)

        async def one(task: Task) -> Trajectory:
            number = await free.get()
            trajectory = await play(self._envs[number], agent, task, env_id=self._env_id, deadlines=self._deadlines)
            if not trajectory.ending.trainable:  # it may be broken, or busy in its thread for ever
                await self._replace(number)
            free.put_nowait(number)
            if on_finished:
                on_finished(task, trajectory)
            return trajectory

        return list(await asyncio.gather(*(one(task) for task in tasks)))


async def play(
    env: gymnasium.Env[str, str], agent: Agent, task: Task, *, env_id: str, deadlines: Deadlines
) -> Trajectory:
    """Plays one episode. An environment that raises or hangs ends it with ENV_ERROR or TIMEOUT; nothing is lost."""
    turns: list[Turn] = []
    about: dict[str, Any] = {}
    clock = asyncio.timeout(deadlines.episode_s)
    try:
        async with clock:
            ending = await _play(EnvCalls(env, timeout_s=deadlines.step_s), agent.player(task.seed), task, turns, about)
    except TimeoutError:
        if not clock.expired():
            raise
        about["error"], ending = f"not over after {deadlines.episode_s:g} s", Ending.TIMEOUT
    return Trajectory(env_id, task.id, task.seed, task.group, tuple(turns), ending, about)


async def _play(calls: EnvCalls, player: Player, task: Task, turns: list[Turn], about: dict[str, Any]) -> Ending:
    """Plays on until the end, which it gives; appends what is played to `turns` and what is known to `about`."""
    try:
        observation, info = await calls.reset(task)
        about |= {key: info[key] for key in ("task", "task_type") if key in info}
        terminated = truncated = False
        while not (terminated or truncated):
            turn, action = await player.act(turns, observation, info, seed=task.seed + len(turns) * _SEED_STRIDE)
            sent = turn.action.strip() if action is None else action
            sent = CutAction(sent) if turn.stopped == "length" else sent
            observation, reward, terminated, truncated, info = await calls.step(sent)
            flags = {key: bool(info[key]) for key in ("success", "inadmissible") if key in info}
            flags |= {"format_invalid": True, "inadmissible": False} if action is None else {"format_invalid": False}
            turns.append(replace(turn, reward=reward, info={**turn.info, **flags}, reports=calls.reported(info)))
        return Ending.TERMINATED if terminated else Ending.MAX_TURNS
    except ContextFull:
        return Ending.CONTEXT_FULL
    except EnvFailed as failure:
        about["error"] = str(failure)
        return failure.ending
