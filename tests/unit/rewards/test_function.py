from collections.abc import Sequence
from pathlib import Path

import pytest

from agentrl.errors import AgentRLError, ConfigError
from agentrl.rewards._base import RawReward
from agentrl.rewards.function import RewardFunction
from tests.episodes import episode

MODULE = """
import torch

NOT_CALLABLE = 3


def turns(trajectories):
    return [len(one.turns) for one in trajectories]


def half_a_turn(trajectories):
    return [[0.5] * len(one.turns) for one in trajectories]


def tensors(trajectories):
    return torch.arange(len(trajectories)) / 2


def short(trajectories):
    return [1.0]


def short_turns(trajectories):
    return [[1.0] for _ in trajectories]


def words(trajectories):
    return ["good"] * len(trajectories)


def one_number(trajectories):
    return 1.0


def broken(trajectories):
    return trajectories[0].no_such_thing
"""
PLAYED = [episode(0, [2, 3]), episode(1, [1, 1, 2])]


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `my_rewards` importable."""
    (tmp_path / "my_rewards.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def given(name: str, *, per_turn: bool = False) -> Sequence[dict[int, RawReward]]:
    return RewardFunction.load(f"my_rewards:{name}", per_turn=per_turn)(PLAYED)


def test_a_number_for_each_episode_is_for_its_last_turn() -> None:
    assert given("turns") == [{1: RawReward(2.0)}, {2: RawReward(3.0)}]
    assert given("tensors") == [{1: RawReward(0.0)}, {2: RawReward(0.5)}]


def test_a_list_for_each_episode_is_for_its_turns() -> None:
    half = RawReward(0.5)
    assert given("half_a_turn", per_turn=True) == [{0: half, 1: half}, {0: half, 1: half, 2: half}]


@pytest.mark.parametrize(
    ("name", "per_turn", "told"),
    [
        ("short", False, "returned 1 rewards for 2 episodes; return one for each, in their order"),
        ("short_turns", True, "returned 1 rewards for 2 turns of task 'task 0'; return one for each"),
        ("one_number", False, "returned 1.0 for 2 episodes; return a list with a number for each"),
        ("turns", True, "returned 2 for 2 turns of task 'task 0'; return a list with a number for each"),
        (
            "half_a_turn",
            False,
            r"returned \[0.5, 0.5\] for a reward; return numbers \(lists of them are for reward.per",
        ),
        ("words", False, "returned 'good' for a reward; return numbers"),
        ("broken", False, "raised AttributeError: 'Trajectory' object has no attribute 'no_such_thing'"),
    ],
)
def test_what_is_wrong_with_a_function_is_told(name: str, per_turn: bool, told: str) -> None:
    with pytest.raises(AgentRLError, match=rf"^reward\.path: my_rewards:{name} {told}"):
        given(name, per_turn=per_turn)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (
            "my_reward:turns",
            "cannot import my_reward:turns: No module named 'my_reward'; write package.module:function",
        ),
        ("my_rewards:turn", "cannot import my_rewards:turn: module 'my_rewards' has no attribute 'turn'"),
        ("my_rewards:NOT_CALLABLE", "my_rewards:NOT_CALLABLE is int; name a function of the trajectories"),
    ],
)
def test_what_cannot_be_imported_or_called_is_told(path: str, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"^reward\.path: {told}"):
        RewardFunction.load(path, per_turn=False)
