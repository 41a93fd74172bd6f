from collections.abc import Sequence
from dataclasses import replace

import pytest

from agentrl.algorithms.gigpo import GiGPO, GiGPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.trajectory import Trajectory
from tests.episodes import episode
from tests.unit.algorithms.steps import by_token, outcomes


def visit(
    number: int, states: str, rewards: Sequence[float], *, group: int = 0, tokens: int = 1, whole: bool = True
) -> Trajectory:
    """Gives an episode that met these states, one letter each, and was paid after each."""
    made = episode(number, [tokens] * len(states), group=group, whole=whole)
    seen = zip(made.turns, states, rewards, strict=True)
    return replace(made, turns=tuple(replace(turn, observation=state, reward=r) for turn, state, r in seen))


def turn_advantages(batch: Batch, **knobs: object) -> list[list[float]]:
    """Gives A_turn without its deviation, token by token."""
    with_turns = GiGPOConfig.model_validate({"normalize_std": False, **knobs})
    without = with_turns.model_copy(update={"step_weight": 0.0})
    return by_token(GiGPO(with_turns).advantages(batch) - GiGPO(without).advantages(batch), batch)


@pytest.mark.parametrize("whole", [True, False])
def test_turns_are_compared_with_those_that_met_the_same_state(whole: bool) -> None:
    batch = make_batch([visit(0, "xyz", (0, 0, 1), tokens=2, whole=whole), visit(1, "xz", (0, 0), whole=whole)])
    # Returns to go: 0.25, 0.5, 1 of the first and 0, 0 of the second. Both met x and z; y was met once.
    expected = [[0.125] * 2 + [0] * 2 + [0.5] * 2, [-0.125, -0.5]]
    assert turn_advantages(batch, gamma=0.5) == [pytest.approx(row) for row in expected]


def test_a_state_met_twice_in_one_episode_is_compared_with_itself() -> None:
    batch = make_batch([visit(0, "xx", (0, 1)), visit(1, "x", (0,))])
    mean = (0.5 + 1 + 0) / 3
    assert turn_advantages(batch, gamma=0.5) == [pytest.approx([0.5 - mean, 1 - mean]), [pytest.approx(-mean)]]


def test_equal_states_of_different_groups_are_strangers() -> None:
    batch = make_batch([visit(0, "x", (1,), group=0), visit(1, "x", (0,), group=1)])
    assert turn_advantages(batch) == [[0], [0]]


def test_a_reward_of_a_turn_counts_from_that_turn_back() -> None:
    batch = make_batch([visit(0, "xy", (2, 4)), visit(1, "xy", (0, 0))])
    assert turn_advantages(batch, gamma=0.5) == [pytest.approx([4 / 2, 4 / 2]), pytest.approx([-4 / 2, -4 / 2])]
    assert turn_advantages(batch, gamma=1.0) == [pytest.approx([6 / 2, 4 / 2]), pytest.approx([-6 / 2, -4 / 2])]


def test_both_advantages_are_in_units_of_their_groups_deviation_and_add_up() -> None:
    batch = make_batch([visit(0, "xy", (0, 1)), visit(1, "xz", (0, 0)), visit(2, "w", (0,))])
    third = (2 / 3) / (1 / 3) ** 0.5  # returns 1, 0, 0: mean 1/3, variance 1/3
    half = 2**-0.5  # x was met with 0.95 and 0 to come: z-scores of two
    found = by_token(GiGPO(GiGPOConfig(step_weight=0.3, std_eps=1e-12)).advantages(batch), batch)
    expected = [[third + 0.3 * half, third], [-third / 2 - 0.3 * half, -third / 2], [-third / 2]]
    assert found == [pytest.approx(row) for row in expected]


def test_a_trajectory_alone_in_its_group_gets_nothing_or_its_return() -> None:
    batch = outcomes([0.5])
    assert by_token(GiGPO(GiGPOConfig()).advantages(batch), batch) == [[0]]
    kept = GiGPO(GiGPOConfig(singleton="keep", normalize_std=False))
    assert by_token(kept.advantages(batch), batch) == [[0.5]]


def test_an_epsilon_for_a_deviation_that_is_not_taken_is_a_problem() -> None:
    what = "no effect without normalize_std; leave it out, or set normalize_std"
    assert GiGPOConfig(normalize_std=False, std_eps=0.1).problems() == [("std_eps", what)]
    assert GiGPOConfig(normalize_std=False).problems() == GiGPOConfig(std_eps=0.1).problems() == []
