from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from agentrl.chat import ChatFormat
from agentrl.config.schema import FiltersConfig
from agentrl.engines._base import SamplingParams
from agentrl.engines.scripted import ScriptedEngine
from agentrl.prompts import Prompt
from agentrl.rollout import Agent, Collector, EngineAgent, Speaker
from agentrl.tasks import Task, TaskSampler, TaskSet
from agentrl.training.distributed import Ranks
from agentrl.training.experience import Gatherer, differing_groups
from agentrl.trajectory import Ending, Trajectory
from tests.episodes import episode
from tests.tiny import tiny_tokenizer

TASKS = TaskSet("train", [f"task {i}" for i in range(12)], sha256="")
CUT = Ending.CONTEXT_FULL
Outcome = Callable[[Task, float], Trajectory]


class MadeUp(Collector):
    """Gives made-up episodes; remembers which tasks it was asked to play at which temperature."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(lambda: pytest.fail("no environment is needed"), env_id="test/Made-v0", concurrency=1)
        self._outcome = outcome
        self.asked: list[tuple[str, float]] = []

    def play(
        self, agent: Agent, tasks: Sequence[Task], *, on_finished: Callable[[Task, Trajectory], None] | None = None
    ) -> list[Trajectory]:
        assert on_finished is None
        assert isinstance(agent, EngineAgent)
        temperature = agent.params.temperature
        self.asked += [(task.id, temperature) for task in tasks]
        return [self._outcome(task, temperature) for task in tasks]


def gatherer(collector: Collector, *, group_size: int = 2, **options: object) -> Gatherer:
    chat = ChatFormat(tiny_tokenizer())
    agent = EngineAgent(
        ScriptedEngine(lambda ids, seed: []),
        Speaker(chat, Prompt()),
        SamplingParams(temperature=0.7, max_tokens=2, stop_ids=chat.stop_ids),
        context_tokens=100,
    )
    sampler = TaskSampler(TASKS, tasks_per_step=4, group_size=group_size, seed=0)
    return Gatherer(agent, collector, sampler, Ranks(), **options)  # type: ignore[arg-type]


def outcome(paid: Callable[[Task, float], float], ending: Callable[[Task], Ending] | None = None) -> Outcome:
    def play(task: Task, temperature: float) -> Trajectory:
        made = episode(task.group, [2], episode_return=paid(task, temperature), group=task.group)
        ended = ending(task) if ending else Ending.TERMINATED
        return replace(made, task_id=task.id, seed=task.seed, ending=ended)

    return play


def test_without_wishes_what_is_played_is_what_is_trained_on() -> None:
    collector = MadeUp(outcome(lambda task, temperature: 1.0))
    found = gatherer(collector).gather(0)
    assert found.trajectories == found.played
    assert len(found.played) == 8
    assert found.baselines is None
    assert found.metrics["rollout/episode_return"] == 1.0


def test_groups_with_equal_returns_are_replaced_by_new_tasks() -> None:
    hard = {f"task {i}" for i in range(0, 12, 2)}  # every attempt fails; at the others every second one does

    def paid(task: Task, temperature: float) -> float:
        return 0.0 if task.id in hard else float(task.seed == seeds.setdefault(task.id, task.seed))

    seeds: dict[str, int] = {}
    collector = MadeUp(outcome(paid))
    found = gatherer(collector, max_refills=10).gather(0)
    groups = {trajectory.group for trajectory in found.trajectories}
    assert len(groups) == 4
    assert not {trajectory.task_id for trajectory in found.trajectories} & hard
    assert len(found.trajectories) == 8
    assert len(found.played) == len(collector.asked) > 8
    assert len({(one.task_id, one.group) for one in found.played}) == len({one.task_id for one in found.played})
    assert found.metrics["rollout/refills"] >= 1
    mixed = len({one.task_id for one in found.played} - hard)
    assert found.metrics["rollout/differing_group_frac"] == mixed / len({one.task_id for one in found.played})


def test_refills_end_at_their_limit_and_where_no_task_is_left() -> None:
    collector = MadeUp(outcome(lambda task, temperature: 0.0))
    found = gatherer(collector, max_refills=1).gather(0)
    assert found.trajectories == []
    assert len(found.played) == 16
    assert found.metrics["rollout/refills"] == 1
    found = gatherer(MadeUp(outcome(lambda task, temperature: 0.0)), max_refills=10).gather(0)
    assert len(found.played) == 24
    assert found.metrics["rollout/refills"] == 2


def test_what_a_filter_drops_is_played_and_counted_and_not_trained_on() -> None:
    full = outcome(lambda task, temperature: 1.0, lambda task: CUT if task.group in (1, 3) else Ending.TERMINATED)
    found = gatherer(MadeUp(full), filters=FiltersConfig(overlong=True)).gather(0)
    assert {trajectory.group for trajectory in found.trajectories} == {0, 2}
    assert len(found.played) == 8
    assert found.metrics["rollout/filtered_overlong_frac"] == found.metrics["rollout/filtered_frac"] == 4 / 8
    assert found.metrics["rollout/ending_context_full_frac"] == 4 / 8


def test_groups_that_filters_leave_without_a_difference_are_replaced() -> None:
    seeds: dict[str, int] = {}

    def first_wins(task: Task, temperature: float) -> float:
        return float(task.seed == seeds.setdefault(task.id, task.seed))

    losers_are_cut = outcome(
        first_wins, lambda task: CUT if task.group == 0 and task.seed != seeds[task.id] else Ending.TERMINATED
    )
    found = gatherer(MadeUp(losers_are_cut), max_refills=1, filters=FiltersConfig(overlong=True)).gather(0)
    assert {trajectory.group for trajectory in found.trajectories} == {1, 2, 3, 4}
    assert (len(found.played), len(found.trajectories)) == (10, 8)
    assert found.metrics["rollout/filtered_overlong_frac"] == 1 / 10


def test_the_greedy_policy_plays_each_task_once_at_temperature_0() -> None:
    collector = MadeUp(outcome(lambda task, temperature: 1.0 if temperature else 0.25))
    found = gatherer(collector, requires=frozenset({"greedy"})).gather(0)
    greedy = [task_id for task_id, temperature in collector.asked if temperature == 0]
    assert len(greedy) == len(set(greedy)) == 4
    assert found.baselines == {0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}
    assert found.metrics["rollout/greedy_return"] == 0.25
    assert found.metrics["rollout/episode_return"] == 1.0


def test_the_greedy_policy_plays_the_tasks_that_are_trained_on_also_those_of_refills() -> None:
    hard = {f"task {i}" for i in range(0, 12, 2)}
    seeds: dict[str, int] = {}

    def paid(task: Task, temperature: float) -> float:
        return 0.0 if task.id in hard else float(task.seed == seeds.setdefault(task.id, task.seed))

    collector = MadeUp(outcome(paid))
    found = gatherer(collector, requires=frozenset({"greedy"}), max_refills=10).gather(0)
    assert found.metrics["rollout/refills"] >= 1
    assert found.baselines is not None
    assert set(found.baselines) == {trajectory.group for trajectory in found.trajectories}
    greedy = [task_id for task_id, temperature in collector.asked if temperature == 0]
    assert sorted(greedy) == sorted({trajectory.task_id for trajectory in found.trajectories})


def test_without_a_group_to_train_on_nothing_is_played_greedily() -> None:
    collector = MadeUp(outcome(lambda task, temperature: 0.0))
    found = gatherer(collector, requires=frozenset({"greedy"}), max_refills=1).gather(0)
    assert (found.trajectories, found.baselines) == ([], {})


def test_a_greedy_episode_that_failed_gives_no_baseline() -> None:
    collector = MadeUp(
        outcome(lambda task, temperature: 1.0, lambda task: Ending.ENV_ERROR if task.group == 2 else Ending.TERMINATED)
    )
    found = gatherer(collector, requires=frozenset({"greedy"})).gather(0)
    assert found.baselines == {0: 1.0, 1: 1.0, 3: 1.0}
    assert found.metrics["rollout/greedy_error_frac"] == 0.25


def test_trajectories_are_scored_before_they_are_compared() -> None:
    collector = MadeUp(outcome(lambda task, temperature: 0.0))

    def first_wins(played: list[Trajectory]) -> list[Trajectory]:
        seen: set[int] = set()
        scored = []
        for one in played:
            reward = 0.0 if one.group in seen else 1.0
            seen.add(one.group)
            scored.append(replace(one, turns=(replace(one.turns[0], reward=reward),)))
        return scored

    found = gatherer(collector, score=first_wins, max_refills=3).gather(0)
    assert found.metrics["rollout/refills"] == 0
    assert found.metrics["rollout/episode_return"] == 0.5


def test_episodes_that_failed_do_not_make_a_group_differ() -> None:
    played = [
        episode(0, [1], episode_return=1.0, group=0),
        episode(1, [1], episode_return=0.0, group=0, ending=Ending.ENV_ERROR),
        episode(2, [1], episode_return=1.0, group=1),
        episode(3, [1], episode_return=0.0, group=1),
    ]
    assert differing_groups(played) == [1]
