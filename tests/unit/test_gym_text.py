from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from agentrl.errors import EnvError, NotFound
from agentrl.gym_text import GymTextAdapter
from agentrl.rollout import ActorAgent, Collector
from agentrl.tasks import every_task

MOVES = {"left": 0, "down": 1, "right": 2, "up": 3}
AROUND_THE_HOLES = ["down", "down", "right", "right", "down", "right"]


def lake(**options: Any) -> GymTextAdapter:
    """Gives a frozen lake that is not slippery: 4 x 4 fields, numbered from 0 to 15, holes at 5, 7, 11 and 12."""
    return GymTextAdapter(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        parse=lambda text: MOVES.get(text.strip().lower()),
        describe=lambda field: f"You stand on field {field}.",
        **options,
    )


def test_an_episode_is_played_in_words() -> None:
    env = lake()
    assert env.reset(options={"task_id": "seed-3"})[0] == "You stand on field 0."
    steps = [env.step(word) for word in AROUND_THE_HOLES]
    assert [step[0] for step in steps] == [f"You stand on field {field}." for field in (4, 8, 9, 10, 14, 15)]
    assert [step[1] for step in steps] == [0, 0, 0, 0, 0, 1]
    assert [step[2] for step in steps] == [False] * 5 + [True]
    assert [step[4]["success"] for step in steps] == [False] * 5 + [True]


def test_falling_into_a_hole_is_no_success() -> None:
    env = lake()
    env.reset(options={"task_id": "seed-0"})
    env.step("right")
    *_, terminated, truncated, info = env.step("down")
    assert (terminated, truncated, info["success"]) == (True, False, False)


def test_words_that_are_no_action_cost_a_turn_and_change_nothing() -> None:
    env = lake()
    text, _ = env.reset(options={"task_id": "seed-0"})
    observation, reward, terminated, truncated, info = env.step("dance")
    assert (observation, reward, terminated, truncated) == (text, 0.0, False, False)
    assert info["inadmissible"]
    assert not env.step("down")[4]["inadmissible"]


def test_a_task_is_a_seed() -> None:
    env = GymTextAdapter(gymnasium.make("Blackjack-v1"), parse=lambda text: {"hit": 1, "stick": 0}.get(text))
    dealt = [env.reset(seed=seed, options={"task_id": f"seed-{task}"})[0] for seed in (0, 1) for task in range(20)]
    assert dealt[:20] == dealt[20:]
    assert len(set(dealt[:20])) > 10
    assert env.reset(seed=5)[1]["task_id"] == env.reset(seed=5)[1]["task_id"]
    with pytest.raises(NotFound, match="its tasks are seed-0"):
        env.reset(options={"task_id": "17"})


def test_the_seeds_of_training_are_none_of_evaluation() -> None:
    env = lake(num_tasks=(20, 5))
    train, evaluation = env.task_set("train"), env.task_set("in_distribution")
    assert (len(train), len(evaluation)) == (20, 5)
    assert not set(train.ids) & set(evaluation.ids)
    assert env.reset(seed=0)[1]["task_id"] in train.ids
    with pytest.raises(NotFound, match="no split 'out_of_distribution'"):
        env.task_set("out_of_distribution")


def test_success_can_be_said_otherwise() -> None:
    env = lake(success=lambda total, info: total == 0)
    env.reset(options={"task_id": "seed-0"})
    env.step("right")
    assert env.step("down")[4]["success"]


def test_a_description_that_is_no_text_is_a_mistake() -> None:
    env = GymTextAdapter(gymnasium.make("FrozenLake-v1"), parse=int, describe=lambda field: field)  # type: ignore[arg-type,return-value]
    with pytest.raises(EnvError, match="describe gave int"):
        env.reset(seed=0)


def test_gymnasium_finds_nothing_to_complain_about() -> None:
    check_env(lake(), skip_render_check=True)


def test_its_episodes_are_collected_like_any_others() -> None:
    collector = Collector(lake, env_id="test/Lake-v0", concurrency=2)
    tasks = every_task(lake(num_tasks=(4, 2)).task_set("train"), samples=1, seed=0)
    played = collector.play(
        ActorAgent(lambda seed: lambda text, info: "dance" if text.endswith("9.") else "down"), tasks
    )
    assert [len(one.turns) for one in played] == [3] * 4  # down to field 12, a hole
    assert not any(one.success for one in played)
