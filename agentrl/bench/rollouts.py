"""Episodes a second: as agentrl plays them, in a loop with a barrier at each turn, and in TRL's environment loop."""

import asyncio
import copy
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

from agentrl import assembly
from agentrl.config import load_config
from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.rollout import Collector, EngineAgent
from agentrl.tasks import Task, TaskSampler
from agentrl.trajectory import Turn

TRL_INSTALL = "pip install trl datasets"


class EndsAfter(gymnasium.Wrapper[str, str, str, str]):
    """Ends an episode after a number of turns that its seed decides: evenly from 2 to `most`."""

    def __init__(self, env: gymnasium.Env[str, str], most: int) -> None:
        super().__init__(env)
        self._most = most
        self._left = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Gives the first observation, and its info."""
        self._left = 2 + (seed or 0) % (self._most - 1)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Gives what the environment does, which is truncated at the last turn."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._left -= 1
        return observation, reward, terminated, truncated or self._left == 0, info


@dataclass(frozen=True)
class Workload:
    """Games, a model and how it is spoken to."""

    weights: assembly.Weights
    agent: EngineAgent
    make_env: Callable[[], gymnasium.Env[str, str]]
    tasks: Sequence[Task]
    env_id: str

    @property
    def params(self) -> SamplingParams:
        """How turns are sampled."""
        return self.agent.params

    def on(self, engine: HFEngine) -> EngineAgent:
        """Gives the agent on another engine."""
        return EngineAgent(engine, self.agent.speaker, self.agent.params, self.agent.context_tokens)

    def model(self) -> Any:
        """Gives a copy of the model."""
        return copy.deepcopy(self.weights.policy.model)


def workload(config_name: str, overrides: Sequence[str], *, num_episodes: int, most_turns: int) -> Workload:
    """Gives as many games of a configuration, of 2 to `most_turns` turns."""
    config = load_config(config_name, (*overrides, f"env.max_turns={most_turns}")).config
    weights = assembly.Weights.load(config)
    make_env = assembly.env_factory(config)
    tasks = TaskSampler(assembly.task_set(config, "train"), tasks_per_step=num_episodes, group_size=1, seed=0)
    return Workload(
        weights=weights,
        agent=assembly.agent(config, weights),
        make_env=lambda: EndsAfter(make_env(), most_turns),
        tasks=tasks.batch(0),
        env_id=config.env.id,
    )


def measure_episodes(work: Workload, *, repeats: int) -> list[dict[str, Any]]:
    """Gives a row for each loop: the least seconds of `repeats` runs in turn, after one that warms up.

    All play the same games with the same model in the same type on the same threads. `speedup` is agentrl's episodes a
    second over the row's.
    """
    plays = {"agentrl": agentrl_loop(work), "barrier": barrier_loop(work)}
    if importlib.util.find_spec("trl"):
        from agentrl.bench.peers import trl_loop

        plays["trl"] = trl_loop(work)
    found: dict[str, dict[str, float]] = {}
    for repeat in range(repeats + (repeats > 1)):
        for name, play in plays.items():
            row = play()
            if repeat < 2 or row["seconds"] < found[name]["seconds"]:
                found[name] = row
    best = len(work.tasks) / found["agentrl"]["seconds"]
    return [
        {"loop": name, "episodes_per_s": len(work.tasks) / row["seconds"]}
        | {"speedup": best * row["seconds"] / len(work.tasks), **row}
        for name, row in found.items()
    ]


def agentrl_loop(work: Workload) -> Callable[[], dict[str, float]]:
    """Gives what plays the games as agentrl does."""
    agent = work.on(HFEngine(work.model()))
    collector = Collector(work.make_env, env_id=work.env_id, concurrency=len(work.tasks))

    def play() -> dict[str, float]:
        clock = Clock()
        turns = [turn for trajectory in collector.play(agent, work.tasks) for turn in trajectory.turns]
        agent.engine.load_weights([], version=0)  # the next time, nothing is remembered
        return clock.row(len(turns), sum(len(turn.action_ids) for turn in turns))

    return play


def barrier_loop(work: Workload) -> Callable[[], dict[str, float]]:
    """Gives what plays the games with the same engine as verl-agent's loop does.

    Each turn waits for the slowest, reads the whole conversation again, and prompts finished episodes too until all
    are done (agent_system/multi_turn_rollout/rollout_loop.py of langfengQ/verl-agent).
    """
    agent = work.on(HFEngine(work.model(), cache_tokens=0))
    envs = [work.make_env() for _ in work.tasks]

    async def answers(prompts: list[tuple[int, ...]], turn: int) -> list[Completion]:
        asked = (
            agent.engine.generate(prompt, work.params, seed=task.seed + turn)
            for prompt, task in zip(prompts, work.tasks, strict=True)
        )
        return list(await asyncio.gather(*asked))

    def play() -> dict[str, float]:
        clock, speaker = Clock(), agent.speaker
        shown = [
            env.reset(seed=task.seed % 2**31, options={"task_id": task.id})
            for env, task in zip(envs, work.tasks, strict=True)
        ]
        turns: list[list[Turn]] = [[] for _ in envs]
        going, num_turns, num_tokens = [True] * len(envs), 0, 0
        prompts = [speaker.prompt_ids((), *seen) for seen in shown]
        while any(going):
            completions = asyncio.run(answers(prompts, num_turns))
            num_turns += 1
            num_tokens += sum(len(completion.ids) for completion in completions)
            for i in (i for i, goes in enumerate(going) if goes):
                text = speaker.chat.decode(completions[i].ids)
                turns[i].append(Turn(prompts[i], completions[i].ids, completions[i].logprobs, shown[i][0], text))
                action = speaker.prompt.action(text)
                observation, _, terminated, truncated, info = envs[i].step(text.strip() if action is None else action)
                shown[i] = observation, info
                going[i] = not (terminated or truncated)
                if going[i]:
                    prompts[i] = speaker.prompt_ids(turns[i], observation, info)
        return clock.row(num_turns * len(envs), num_tokens)

    return play


class Clock:
    """Seconds of wall and of processor time since it was made."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def row(self, num_turns: int, num_tokens: int) -> dict[str, float]:
        """Gives seconds, processor seconds, turns and sampled tokens."""
        seconds, cpu_s = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"seconds": seconds, "cpu_s": cpu_s, "turns": num_turns, "action_tokens": num_tokens}
