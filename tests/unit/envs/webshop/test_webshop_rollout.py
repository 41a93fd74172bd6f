import pytest

import agentrl
from agentrl.env import text_env
from agentrl.evaluation.players import expert_player, random_player
from agentrl.rollout import ActorAgent, Collector
from agentrl.tasks import TaskSampler

ID = "agentrl/WebShop-v0"


def collector(concurrency, **options):
    return Collector(lambda: agentrl.make(ID, num_products=100, **options), env_id=ID, concurrency=concurrency)


@pytest.mark.parametrize("mode", ["text", "text_plus"])
def test_256_sessions_at_once_give_what_one_at_a_time_gives(mode):
    env = text_env(agentrl.make(ID, num_products=100, mode=mode))
    tasks = TaskSampler(env.task_set("train"), tasks_per_step=128, group_size=2, seed=0).batch(0)
    agent = ActorAgent(expert_player(env, noise=0.3))
    at_once = collector(256, mode=mode).play(agent, tasks)
    assert len(at_once) == 256
    assert at_once == collector(1, mode=mode).play(agent, tasks)
    assert len({tuple(turn.action for turn in trajectory.turns) for trajectory in at_once}) > 100


def test_a_random_player_ends_every_episode():
    env = text_env(agentrl.make(ID, num_products=100))
    tasks = TaskSampler(env.task_set("train"), tasks_per_step=64, group_size=1, seed=0).batch(0)
    played = collector(64).play(ActorAgent(random_player), tasks)
    assert {trajectory.ending.value for trajectory in played} <= {"terminated", "max_turns"}
    assert not any(turn.info["inadmissible"] for trajectory in played for turn in trajectory.turns)
