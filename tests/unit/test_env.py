from collections.abc import Mapping
from typing import Any

import gymnasium
import pytest

import agentrl
from agentrl.env import AnyText, TextEnv, text_env
from agentrl.errors import EnvError, NotFound


def guess(**options: Any) -> tuple[gymnasium.Env[str, str], TextEnv]:
    env = agentrl.make("agentrl/Guess-v0", **options)
    return env, text_env(env)


def test_making_an_environment_loads_its_plugin() -> None:
    env, inner = guess()
    assert type(inner).__module__ == "agentrl_envs.guess"
    assert env.unwrapped is inner


def test_a_limit_on_turns_truncates() -> None:
    env, _ = guess(max_turns=2)
    env.reset(seed=0, options={"task_id": "7"})
    assert [env.step("1")[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_without_a_task_the_seed_chooses_one_of_training() -> None:
    env, inner = guess()
    chosen = [env.reset(seed=seed)[1]["task_id"] for seed in range(100)]
    assert chosen == [env.reset(seed=seed)[1]["task_id"] for seed in range(100)]
    assert set(chosen) == set(inner.task_set("train").ids)


def test_guess_says_which_way_and_pays_for_the_digit() -> None:
    env, _ = guess()
    observation, info = env.reset(seed=0, options={"task_id": "4"})
    assert (observation, info["task_id"]) == ("I think of a digit.", "4")
    found = [env.step(action) for action in ("2", "9", "", "12", "4")]
    assert [step[0] for step in found] == ["higher", "lower", "higher", "higher", "correct"]
    assert [step[1] for step in found] == [0, 0, 0, 0, 1]
    assert [step[4]["inadmissible"] for step in found] == [False, False, True, True, False]
    assert [step[4]["success"] for step in found] == [False] * 4 + [True]


def test_the_expert_of_guess_sees_what_a_policy_sees_and_wins() -> None:
    env, inner = guess()
    for digit in "0123456789":
        observation, info = env.reset(seed=0, options={"task_id": digit})
        act, hidden = inner.expert(0), {}
        for _ in range(4):
            observation, _, won, _, info = env.step(act(observation, hidden))
            if won:
                break
        assert info["success"]


def test_splits_are_named_and_checked() -> None:
    _, inner = guess()
    assert {*inner.task_set("train").ids} & {*inner.task_set("out_of_distribution").ids} == set()
    with pytest.raises(NotFound, match=r"it has: train, in_distribution, out_of_distribution\. Did you mean 'train'"):
        inner.check_split("trian")


def test_an_unknown_namespace_names_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"Did you mean 'agentrl'.*Installed environment plugins: .*agentrl"):
        agentrl.make("agentlr/Guess-v0")


def test_an_unknown_environment_says_where_all_are_listed() -> None:
    with pytest.raises(NotFound, match="agentrl envs list"):
        agentrl.make("agentrl/Gess-v0")


def test_an_unknown_option_says_where_the_options_are() -> None:
    with pytest.raises(EnvError, match="agentrl envs show agentrl/Guess-v0"):
        agentrl.make("agentrl/Guess-v0", digits=3)


def test_an_environment_of_another_kind_is_refused() -> None:
    with pytest.raises(EnvError, match="CartPoleEnv is no TextEnv"):
        text_env(gymnasium.make("CartPole-v1"))


def test_every_string_is_text() -> None:
    space = AnyText()
    assert "\u200b🙂" in space
    assert 3 not in space
    space.seed(0)
    assert space.sample() in space


def test_an_environment_without_an_expert_says_so() -> None:
    class Bare(TextEnv):
        def reset(
            self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
        ) -> tuple[str, dict[str, Any]]:
            return "", {}

    with pytest.raises(EnvError, match="Bare has no expert"):
        Bare().expert(0)
