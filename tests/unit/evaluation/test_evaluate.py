import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.errors import DataError, EnvError
from agentrl.evaluation.evaluate import evaluate, metrics
from agentrl.evaluation.players import random_player
from agentrl.evaluation.records import EpisodeFile
from agentrl.evaluation.results import Plan
from agentrl.policy import load_model
from agentrl.prompts import Prompt
from agentrl.rollout import ActorAgent, Agent, Collector, EngineAgent, Speaker
from agentrl.tasks import Task, TaskSet
from agentrl.trajectory import Trajectory
from agentrl_envs.guess import Guess

DIGITS = TaskSet("all", list("0123456789"), "0" * 64)
RANDOM = ActorAgent(random_player)


class Flaky(Guess):
    """Breaks in the tasks that a set holds, which the test may empty."""

    broken: set[str]

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.secret in self.broken:
            raise EnvError("out of order")
        return super().step(action)


def guesses(concurrency: int = 4, broken: set[str] | None = None) -> Collector:
    """Gives what plays Guess; tasks in `broken` break for as long as they are in it."""

    def make() -> Any:
        env = Flaky()
        env.broken = broken if broken is not None else set()
        return gymnasium.wrappers.TimeLimit(env, 6)

    return Collector(make, env_id="agentrl/Guess-v0", concurrency=concurrency)


def plan(samples: int = 3, tasks: TaskSet = DIGITS, seed: int = 1) -> Plan:
    return Plan(tasks, "in_distribution", "random", samples, seed, {"env_id": "agentrl/Guess-v0"})


class Interrupted(Exception):
    """Ctrl-C, as far as an evaluation is concerned."""


class InterruptedCollector:
    """Plays until `num` episodes are over."""

    def __init__(self, collector: Collector, num: int) -> None:
        self._collector = collector
        self._left = num

    def play(
        self, agent: Agent, tasks: Sequence[Task], *, on_finished: Callable[[Task, Trajectory], None] | None = None
    ) -> list[Trajectory]:
        def stop(task: Task, trajectory: Trajectory) -> None:
            if self._left == 0:
                raise Interrupted
            self._left -= 1
            assert on_finished is not None
            on_finished(task, trajectory)

        return self._collector.play(agent, tasks, on_finished=stop)


def test_every_task_is_played_once_a_sample_and_in_order():
    result = evaluate(RANDOM, guesses(), plan())
    assert [(one["task_id"], one["sample"]) for one in result["tasks"]] == [
        (digit, sample) for digit in DIGITS.ids for sample in range(3)
    ]
    assert len({one["seed"] for one in result["tasks"]}) == 30
    assert (result["num_tasks"], result["num_episodes"]) == (10, 30)


@pytest.mark.parametrize("num", [0, 1, 17, 29])
def test_an_interrupted_evaluation_goes_on_to_the_same_result(tmp_path: Path, num: int):
    whole = json.dumps(evaluate(RANDOM, guesses(), plan()))
    with pytest.raises(Interrupted):
        evaluate(RANDOM, InterruptedCollector(guesses(), num), plan(), file=EpisodeFile(tmp_path / "x.jsonl", {}))
    file = EpisodeFile(tmp_path / "x.jsonl", {})
    assert len(file.finished) == num
    assert json.dumps(evaluate(RANDOM, InterruptedCollector(guesses(), 30 - num), plan(), file=file)) == whole


def test_a_finished_evaluation_is_not_played_again(tmp_path: Path):
    whole = evaluate(RANDOM, guesses(), plan(), file=EpisodeFile(tmp_path / "x.jsonl", {}))
    again = evaluate(RANDOM, InterruptedCollector(guesses(), 0), plan(), file=EpisodeFile(tmp_path / "x.jsonl", {}))
    assert again == whole


def test_episodes_that_broke_count_as_lost_until_they_are_played_again(tmp_path: Path):
    sound = evaluate(RANDOM, guesses(), plan())
    broken = {"3", "4"}
    first = evaluate(RANDOM, guesses(broken=broken), plan(), file=EpisodeFile(tmp_path / "x.jsonl", {}))
    assert first["endings"]["env_error"] == 6
    assert first["num_episodes"] == 30
    assert {one["info"]["error"] for one in first["tasks"] if one["ending"] == "env_error"} == {"out of order"}
    left = InterruptedCollector(guesses(), 6)
    assert evaluate(RANDOM, left, plan(), file=EpisodeFile(tmp_path / "x.jsonl", {})) == sound


@pytest.mark.parametrize("concurrency", [1, 3, 64])
def test_a_models_result_does_not_depend_on_how_many_episodes_are_played_at_a_time(
    tiny_model_dir: Path, concurrency: int
):
    def result(at_a_time: int) -> str:
        chat = ChatFormat(load_tokenizer(tiny_model_dir))
        params = SamplingParams(temperature=1.0, max_tokens=4, stop_ids=chat.stop_ids, top_p=0.9)
        agent = EngineAgent(HFEngine(load_model(tiny_model_dir, "float32")), Speaker(chat, Prompt()), params, 256)
        return json.dumps(evaluate(agent, guesses(at_a_time), plan(samples=4)))

    assert result(concurrency) == result(16)


class Forgetful:
    """Changes what the collector gives back."""

    def __init__(self, change: Callable[[list[Trajectory]], list[Trajectory]]) -> None:
        self._change = change

    def play(
        self, agent: Agent, tasks: Sequence[Task], *, on_finished: Callable[[Task, Trajectory], None] | None = None
    ) -> list[Trajectory]:
        return self._change(guesses().play(agent, tasks, on_finished=on_finished))


@pytest.mark.parametrize(
    "change",
    [
        lambda played: played[:-1],
        lambda played: [*played, played[0]],
        lambda played: [played[0], *played[:-1]],
        lambda played: random.Random(0).sample(played, len(played)),
    ],
    ids=["one is missing", "one is too many", "one comes twice", "another order"],
)
def test_other_episodes_than_those_asked_for_are_an_error_and_no_smaller_denominator(change):
    with pytest.raises(DataError, match=r"all: .* are not those that were asked for"):
        evaluate(RANDOM, Forgetful(change), plan(samples=1))


def test_a_split_that_names_a_task_twice_is_an_error():
    with pytest.raises(DataError, match="all: 1 of its 3 tasks have the id of another"):
        evaluate(RANDOM, guesses(), plan(tasks=TaskSet("all", ["1", "2", "1"], "")))


def test_episodes_of_tasks_that_are_not_in_the_split_are_an_error(tmp_path: Path):
    evaluate(RANDOM, guesses(), plan(), file=EpisodeFile(tmp_path / "x.jsonl", {}))
    with pytest.raises(DataError, match="27 episodes are of no task of all"):
        evaluate(RANDOM, guesses(), plan(tasks=DIGITS.first(1)), file=EpisodeFile(tmp_path / "x.jsonl", {}))


def test_trackers_get_the_rate_its_interval_and_what_the_environment_reports():
    result = {"success_rate": 0.5, "ci95": [0.25, 0.75], "mean_return": 1.0, "mean_turns": 4.0}
    assert metrics({**result, "reported": {"score": 0.7}}, "eval_in") == {
        "eval_in/success_rate": 0.5,
        "eval_in/ci95_low": 0.25,
        "eval_in/ci95_high": 0.75,
        "eval_in/episode_return": 1.0,
        "eval_in/turns": 4.0,
        "eval_in/score": 0.7,
    }
