from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentrl import assembly
from agentrl.config import load_config
from agentrl.config.schema import FiltersConfig
from agentrl.errors import ConfigError
from agentrl.filters import choose, repetition
from agentrl.trajectory import Ending, Trajectory
from tests.episodes import episode


def kept(played: Sequence[Trajectory], **filters: Any) -> list[int]:
    """Seeds of the episodes that are left: the numbers they were made with."""
    return [one.seed for one in choose(played, FiltersConfig(**filters))[0]]


def group(number: int, wins: int, size: int) -> list[Trajectory]:
    first = 10 * number
    return [episode(first + i, [2], group=number, episode_return=float(i < wins)) for i in range(size)]


def saying(trajectory: Trajectory, *turns: Sequence[int]) -> Trajectory:
    changed = (replace(one, action_ids=tuple(ids)) for one, ids in zip(trajectory.turns, turns, strict=True))
    return replace(trajectory, turns=tuple(changed))


def test_without_filters_all_is_kept_and_nothing_is_counted() -> None:
    played = [episode(0, [2]), episode(1, [], ending=Ending.ENV_ERROR)]
    assert choose(played, FiltersConfig()) == (played, {})


def test_a_void_turn_anywhere_drops_its_episode() -> None:
    played = [episode(number, [2, 2]) for number in range(3)]
    void, sound = ({"void_turn": True}, {"void_turn": False})
    for number, reports in enumerate([(sound, sound), (void, sound), (sound, {})]):
        turns = (replace(turn, reports=told) for turn, told in zip(played[number].turns, reports, strict=True))
        played[number] = replace(played[number], turns=tuple(turns))
    left, metrics = choose(played, FiltersConfig(void_turn=True))
    assert [one.seed for one in left] == [0, 2]
    assert metrics == {"rollout/filtered_void_turn_frac": 1 / 3, "rollout/filtered_frac": 1 / 3}


def test_groups_outside_the_accuracy_band_are_dropped_whole_and_its_ends_belong_to_it() -> None:
    played = [one for number, wins in enumerate([0, 1, 2, 3, 4]) for one in group(number, wins, 4)]
    left, metrics = choose(played, FiltersConfig(accuracy_band=(0.25, 0.5)))
    assert {one.group for one in left} == {1, 2}
    assert len(left) == 8
    assert metrics["rollout/filtered_accuracy_band_frac"] == 12 / 20


def test_the_rate_of_a_group_is_that_of_the_episodes_that_did_not_fail() -> None:
    broken = episode(2, [2], ending=Ending.ENV_ERROR)
    played = [*group(0, 1, 2), broken, *group(1, 2, 2)]
    left, metrics = choose(played, FiltersConfig(accuracy_band=(0.5, 0.9)))
    assert [one.seed for one in left] == [0, 1, 2]  # the batch leaves out 2, as ever
    assert metrics["rollout/filtered_frac"] == 2 / 4


def test_repetition_is_the_share_of_runs_of_20_tokens_that_have_been_there() -> None:
    assert repetition(saying(episode(0, [1]), range(100))) == 0
    assert repetition(saying(episode(0, [1]), range(19))) == 0
    assert repetition(saying(episode(0, [1]), [7] * 25)) == pytest.approx(5 / 6)  # 6 runs, one text
    # Each turn has 3 runs; those of the second are all in the first.
    assert repetition(saying(episode(0, [1, 1]), range(22), range(22))) == pytest.approx(3 / 6)
    # A run does not cross turns: 5 tokens and 20 make one run each time, the same.
    assert repetition(saying(episode(0, [1, 1, 1]), range(20), range(5), range(20))) == pytest.approx(1 / 2)


def test_episodes_that_repeat_more_than_the_limit_are_dropped() -> None:
    half = saying(episode(0, [1, 1]), range(20), range(20))
    most = saying(episode(1, [1]), [7] * 25)
    assert kept([half, most], repetition=0.5) == [0]
    assert kept([half, most], repetition=0.49) == []
    assert kept([half, most], repetition=0.9) == [0, 1]


def test_an_episode_that_a_token_limit_cut_off_is_overlong() -> None:
    cut = episode(1, [2, 2])
    cut = replace(cut, turns=(cut.turns[0], replace(cut.turns[1], stopped="length")))
    full, ended = episode(2, [2], ending=Ending.CONTEXT_FULL), episode(3, [2], ending=Ending.MAX_TURNS)
    played = [episode(0, [2]), cut, full, ended]
    assert kept(played, overlong=True) == [0, 3]


def test_filters_judge_apart_and_what_they_drop_together_is_counted_once() -> None:
    cut = replace(episode(0, [2]), turns=(replace(episode(0, [2]).turns[0], stopped="length"),))
    played = [cut, episode(1, [2], episode_return=1.0), *group(1, 2, 2)]
    left, metrics = choose(played, FiltersConfig(overlong=True, accuracy_band=(0.5, 0.9)))
    assert [one.seed for one in left] == [1]  # group 0 had won 1 of 2, the overlong episode included
    assert metrics == {
        "rollout/filtered_frac": 3 / 4,
        "rollout/filtered_overlong_frac": 1 / 4,
        "rollout/filtered_accuracy_band_frac": 2 / 4,
    }


def test_a_step_without_episodes_has_nothing_to_drop() -> None:
    assert choose([], FiltersConfig(overlong=True)) == (
        [],
        {"rollout/filtered_frac": 0.0, "rollout/filtered_overlong_frac": 0.0},
    )


def test_void_turns_are_filtered_only_where_the_environment_reports_them() -> None:
    zerotir = load_config("zerotir/tiny", ["filters.void_turn=true"]).config
    assert assembly.filters(zerotir).void_turn
    quickstart = load_config("quickstart", ["filters.void_turn=true"]).config
    with pytest.raises(ConfigError, match=r"filters.void_turn: agentrl/ALFWorld-v0 does not report void turns"):
        assembly.filters(quickstart)
    assert assembly.filters(load_config("quickstart").config) == FiltersConfig()
