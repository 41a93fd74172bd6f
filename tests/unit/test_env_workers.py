import multiprocessing
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agentrl.env import CutAction, TextEnv
from agentrl.env_workers import EnvWorkers
from agentrl.errors import NotFound
from agentrl.rollout import ActorAgent, Collector, Deadlines
from agentrl.tasks import Task
from agentrl.trajectory import Ending


class Odd(TextEnv):
    """Does what its task says; an episode is one step."""

    reports = ("pid",)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.task = (options or {})["task_id"]
        if self.task == "unknown":
            raise NotFound("no task of that name")
        return f"seed {seed}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        match self.task:
            case "dies":
                os._exit(1)
            case "raises":
                raise KeyError("no such thing")
            case "hangs":
                time.sleep(3600)
            case "cannot be sent":
                return "hm", 0.0, True, False, {"own": lambda: 0}
        return f"{action} {type(action).__name__}", 1.0, True, False, {"pid": os.getpid()}


FIVE = ActorAgent(lambda seed: lambda observation, info: "5")


def tasks(*ids: str) -> list[Task]:
    return [Task(task_id, seed=number, group=number) for number, task_id in enumerate(ids)]


@pytest.fixture
def collector() -> Iterator[Collector]:
    workers = EnvWorkers(Odd, 2)
    plays = Collector(workers.make, env_id="test/Odd-v0", concurrency=4, deadlines=Deadlines(20.0))
    yield plays
    plays.close()
    assert not multiprocessing.active_children()


def test_environments_are_shared_out_and_play_what_they_play_at_home(collector: Collector) -> None:
    played = collector.play(FIVE, tasks("a", "b", "c", "d", "e"))
    assert [one.ending for one in played] == [Ending.TERMINATED] * 5
    assert [one.turns[0].observation for one in played] == [f"seed {seed}" for seed in range(5)]
    pids = {one.turns[0].reports["pid"] for one in played}
    assert len(pids) == 2
    assert float(os.getpid()) not in pids


def test_a_worker_that_dies_ends_the_episodes_in_it_and_is_replaced(collector: Collector) -> None:
    dead, *others = collector.play(FIVE, tasks("dies", *"abcdefgh"))
    assert (dead.ending, dead.info["error"]) == (Ending.ENV_ERROR, "the worker process of this environment has ended")
    assert {one.ending for one in others[-4:]} == {Ending.TERMINATED}
    assert [one.ending for one in collector.play(FIVE, tasks(*"abcd"))] == [Ending.TERMINATED] * 4


@pytest.mark.parametrize(
    ("task", "error"), [("raises", "KeyError: 'no such thing'"), ("cannot be sent", "cannot be sent")]
)
def test_an_environment_that_raises_ends_its_own_episode_only(collector: Collector, task: str, error: str) -> None:
    played = collector.play(FIVE, tasks("a", task, "b", "c"))
    assert [one.ending for one in played] == [Ending.TERMINATED, Ending.ENV_ERROR, Ending.TERMINATED, Ending.TERMINATED]
    assert error in played[1].info["error"]


def test_a_users_mistake_stays_one(collector: Collector) -> None:
    with pytest.raises(NotFound, match="no task of that name"):
        collector.play(FIVE, tasks("unknown"))


def test_a_worker_that_hangs_is_ended() -> None:
    plays = Collector(EnvWorkers(Odd, 1).make, env_id="test/Odd-v0", concurrency=1, deadlines=Deadlines(10.0))
    first = plays.play(FIVE, tasks("a"))  # the process is up
    plays._deadlines = Deadlines(0.3)
    played = plays.play(FIVE, tasks("hangs"))
    plays._deadlines = Deadlines(20.0)
    assert [one.ending for one in (*first, *played, *plays.play(FIVE, tasks("b")))] == [
        Ending.TERMINATED,
        Ending.TIMEOUT,
        Ending.TERMINATED,
    ]
    plays.close()
    assert not multiprocessing.active_children()


def test_an_episode_that_fails_does_not_keep_one_that_hangs_in_the_same_worker_from_its_end() -> None:
    plays = Collector(EnvWorkers(Odd, 1).make, env_id="test/Odd-v0", concurrency=2, deadlines=Deadlines(2.0))
    assert plays.play(FIVE, tasks("raises", "hangs", "a"))[1].ending is Ending.TIMEOUT
    assert plays.play(FIVE, tasks(*"abcdef"))[-1].ending is Ending.TERMINATED
    plays.close()
    assert not multiprocessing.active_children()


def test_a_cut_action_stays_one() -> None:
    env = EnvWorkers(Odd, 1).make()
    env.reset(seed=0, options={"task_id": "a"})
    assert env.step(CutAction("5"))[0] == "5 CutAction"
    env.close()
