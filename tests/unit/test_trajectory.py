import json

import pytest

from agentrl.trajectory import Ending, Trajectory, Turn
from tests.episodes import episode


def played(*infos: dict[str, bool], rewards: tuple[float, ...] = ()) -> Trajectory:
    paid = zip(infos, rewards or (0.0,) * len(infos), strict=True)
    turns = tuple(Turn((1,), (2,), (-1.0,), "", "", reward=reward, info=info) for info, reward in paid)
    return Trajectory("test/Made-v0", "a", 0, 0, turns, Ending.TERMINATED)


def test_a_growing_conversation_is_one_row() -> None:
    (row,) = episode(0, [2, 1], episode_return=0.5).segments()
    assert row.ids == (1, 2, 100, 101, 1, 3, 102)
    assert row.action_mask == (False, False, True, True, False, False, True)
    assert row.logprobs == (0, 0, -1, -1, 0, 0, -1)
    assert row.turns == (-1, -1, 0, 0, -1, -1, 1)
    assert row.rewards == (0, 0, 0, 0, 0, 0, 0.5)


def test_a_rewritten_prompt_starts_a_row() -> None:
    first, second = episode(0, [2, 1], episode_return=0.5, whole=False).segments()
    assert (first.ids, second.ids) == ((1, 2, 100, 101), (1, 3, 102))
    assert (first.turns, second.turns) == ((-1, -1, 0, 0), (-1, -1, 1))
    assert (first.rewards, second.rewards) == ((0, 0, 0, 0), (0, 0, 0.5))


def test_rows_merge_only_while_the_whole_past_is_a_prefix() -> None:
    turns = (
        Turn((1,), (10, 11), (-1.0, -1.0), "", ""),
        Turn((1, 10, 11, 2), (12,), (-1.0,), "", ""),
        Turn((1, 10, 99, 2), (13,), (-1.0,), "", ""),  # a sampled token was rewritten
        Turn((1, 10, 99, 2, 13), (14,), (-1.0,), "", ""),  # nothing new was said
    )
    rows = list(Trajectory("test/Made-v0", "a", 0, 0, turns, Ending.TERMINATED).segments())
    assert [row.ids for row in rows] == [(1, 10, 11, 2, 12), (1, 10, 99, 2, 13, 14)]
    assert rows[1].action_mask == (False, False, False, False, True, True)


def test_rewards_of_all_turns_add_up_without_rounding() -> None:
    assert played({}, {}, {}, rewards=(1e16, 1.0, -1e16)).episode_return == 1.0


def test_the_environments_last_word_on_success_counts() -> None:
    assert played({"success": False}, {"success": True}).success
    assert not played({"success": True}, {"success": False}).success
    assert played({"success": True}, {}).success
    assert not played({"success": False}, {}, rewards=(1.0, 1.0)).success


def test_without_a_word_on_success_a_positive_return_is_one() -> None:
    assert played({}, rewards=(0.1,)).success
    assert not played({}, rewards=(0.0,)).success
    assert not played({}, rewards=(-1.0,)).success


def test_a_trajectory_survives_json() -> None:
    turn = Turn((1, 2), (3,), (-0.25,), "see", "do", 1.0, "length", 7, {"success": True})
    before = Trajectory("test/Made-v0", "a", 2**61, 5, (turn,), Ending.MAX_TURNS, {"task_type": "pick"})
    assert Trajectory.from_dict(json.loads(json.dumps(before.to_dict()))) == before


@pytest.mark.parametrize("ending", Ending)
def test_only_a_broken_environment_makes_an_episode_worthless(ending: Ending) -> None:
    assert ending.trainable == (ending not in (Ending.ENV_ERROR, Ending.TIMEOUT))
