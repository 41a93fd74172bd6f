import hashlib
from collections import Counter

import pytest

from agentrl.tasks import TaskSampler, TaskSet, every_task, manifest_sha256

TASKS = TaskSet("train", [f"task {i:02}" for i in range(10)], "0" * 64)


def sampler(*, tasks_per_step: int = 4, group_size: int = 2, seed: int = 0) -> TaskSampler:
    return TaskSampler(TASKS, tasks_per_step=tasks_per_step, group_size=group_size, seed=seed)


@pytest.mark.parametrize("tasks_per_step", [1, 4, 7, 25])
def test_every_task_comes_once_before_any_comes_again(tasks_per_step: int) -> None:
    source = sampler(tasks_per_step=tasks_per_step, group_size=1)
    ids = [task.id for step in range(100) for task in source.batch(step)]
    for epoch in range(len(ids) // 10):
        assert sorted(ids[10 * epoch : 10 * epoch + 10]) == TASKS.ids


def test_epochs_are_shuffled_anew() -> None:
    source = sampler(tasks_per_step=10, group_size=1)
    first, second = ([task.id for task in source.batch(step)] for step in (0, 1))
    assert first != second
    assert first != TASKS.ids


def test_a_step_depends_on_seed_and_step_alone() -> None:
    walked = sampler(seed=3)
    in_order = [walked.batch(step) for step in range(9)]
    for step in (8, 0, 5):
        assert sampler(seed=3).batch(step) == in_order[step] == walked.batch(step)
    assert sampler(seed=4).batch(0) != in_order[0]


def test_a_group_is_one_task_with_a_seed_for_each_attempt() -> None:
    batch = sampler(tasks_per_step=4, group_size=3).batch(5)
    assert [task.group for task in batch] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(len({task.id for task in batch if task.group == group}) == 1 for group in range(4))
    assert len({task.seed for task in batch}) == 12


def test_a_task_that_comes_twice_in_a_step_stays_one_group() -> None:
    batch = sampler(tasks_per_step=25, group_size=2).batch(0)
    assert sorted(Counter(task.id for task in batch).values()) == [4] * 5 + [6] * 5
    assert len({(task.id, task.group) for task in batch}) == len({task.group for task in batch}) == 10


def test_no_seed_is_used_again_in_later_steps() -> None:
    source = sampler()
    seeds = [task.seed for step in range(200) for task in source.batch(step)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**62 for seed in seeds)


def test_a_refill_gives_new_tasks_and_the_same_ones_each_time() -> None:
    source = TaskSampler(TASKS, tasks_per_step=4, group_size=2, seed=0)
    batch = source.batch(3)
    played = {task.id for task in batch}
    refill = source.refill(3, 0, 2, played)
    assert refill == TaskSampler(TASKS, tasks_per_step=4, group_size=2, seed=0).refill(3, 0, 2, played)
    assert source.batch(3) == batch
    assert not {task.id for task in refill} & played
    assert [task.group for task in refill] == [4, 4, 5, 5]
    assert len({task.seed for task in [*batch, *refill]}) == 12
    assert source.refill(3, 1, 2, played) != refill


def test_a_refill_gives_fewer_tasks_when_fewer_are_left() -> None:
    source = TaskSampler(TASKS, tasks_per_step=8, group_size=1, seed=0)
    assert len(source.refill(0, 0, 8, {task.id for task in source.batch(0)})) == 2
    assert source.refill(0, 0, 8, set(TASKS.ids)) == []


def test_an_evaluation_plays_every_task_the_same_number_of_times() -> None:
    plan = every_task(TASKS, samples=3, seed=0)
    assert [task.id for task in plan] == [task_id for task_id in TASKS.ids for _ in range(3)]
    assert len({task.seed for task in plan}) == 30
    assert plan == every_task(TASKS, samples=3, seed=0)
    assert plan != every_task(TASKS, samples=3, seed=1)


def test_the_seeds_of_an_evaluation_are_none_of_training() -> None:
    source = TaskSampler(TASKS, tasks_per_step=10, group_size=10, seed=0)
    training = {task.seed for step in range(50) for task in source.batch(step)}
    assert not training & {task.seed for task in every_task(TASKS, samples=10, seed=0)}


def test_the_first_tasks_are_a_set_with_a_hash_of_its_own() -> None:
    assert TASKS.first(None) is TASKS
    assert TASKS.first(10) is TASKS
    few = TASKS.first(2)
    assert (list(few.ids), len(few)) == (["task 00", "task 01"], 2)
    assert few.sha256 == hashlib.sha256(b"task 00\ntask 01\n").hexdigest() == manifest_sha256(["task 00", "task 01"])
