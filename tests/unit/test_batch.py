import math
from dataclasses import fields, replace

import pytest
import torch

from agentrl.batch import make_batch, stable_number
from agentrl.trajectory import Ending
from tests.episodes import episode


def test_rows_are_padded_on_the_right() -> None:
    batch = make_batch([episode(0, [1]), episode(1, [2, 1], episode_return=0.5)])
    assert batch.input_ids.tolist() == [[1, 2, 100, 0, 0, 0, 0], [1, 2, 200, 201, 1, 3, 202]]
    assert batch.attention_mask.int().tolist() == [[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]]
    assert batch.action_mask.int().tolist() == [[0, 0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 1]]
    assert batch.rollout_logprobs.tolist() == [[0, 0, -1, 0, 0, 0, 0], [0, 0, -1, -1, 0, 0, -1]]
    assert batch.turn.tolist() == [[-1, -1, 0, -1, -1, -1, -1], [-1, -1, 0, 0, -1, -1, 1]]
    assert batch.rewards.tolist() == [[0] * 7, [0, 0, 0, 0, 0, 0, 0.5]]
    assert batch.lengths.tolist() == [3, 7]


def test_rows_of_a_trajectory_share_its_number_group_and_return() -> None:
    batch = make_batch([episode(0, [1, 2], episode_return=0.5, group=4, whole=False), episode(1, [1], group=9)])
    assert batch.trajectory.tolist() == [0, 0, 1]
    assert batch.group.tolist() == [4, 4, 9]
    assert batch.episode_return.tolist() == [0.5, 0.5, 0]


def test_broken_and_unplayed_episodes_leave_no_trace() -> None:
    good = [episode(0, [1], group=1), episode(1, [2], group=2)]
    bad = [
        episode(2, [1], group=1, ending=Ending.ENV_ERROR),
        episode(3, [1], group=1, ending=Ending.TIMEOUT),
        episode(4, [], group=1, ending=Ending.CONTEXT_FULL),
    ]
    with_bad, without = make_batch([good[0], *bad, good[1]]), make_batch(good)
    for field in fields(without):
        expected = getattr(without, field.name)
        if expected is not None:
            assert torch.equal(getattr(with_bad, field.name), expected)


def test_nothing_played_is_an_empty_batch() -> None:
    batch = make_batch([])
    assert batch.input_ids.shape == (0, 0)
    assert not batch.action_mask.any()


def test_selected_rows_lose_the_padding_that_only_others_needed() -> None:
    batch = make_batch([episode(0, [1]), episode(1, [9]), episode(2, [2])])
    part = batch.select(torch.tensor([2, 0]))
    assert part.input_ids.tolist() == [[1, 2, 300, 301], [1, 2, 100, 0]]
    assert part.trajectory.tolist() == [2, 0]
    assert part.old_logprobs is None


def test_a_task_has_the_same_number_in_every_batch_and_another_than_other_tasks() -> None:
    first = make_batch([episode(0, [1], group=4), episode(1, [1, 1], group=9, whole=False)])
    second = make_batch([episode(7, [1], group=9)])
    assert first.task[1] == first.task[2] == second.task[0] != first.task[0]
    assert first.task.tolist()[0] == stable_number("task 4")


def test_stable_numbers_are_those_of_every_machine() -> None:
    # blake2b of nothing, 8 bytes, is e4a6a0577479b2b4
    assert stable_number("") == 0xE4A6A0577479B2B4 >> 1
    assert 0 <= stable_number("a task") < 2**63


@pytest.mark.parametrize("whole", [True, False])
def test_turns_that_answered_the_same_observation_share_an_anchor(whole: bool) -> None:
    first, second = episode(0, [2, 1], whole=whole), episode(1, [1, 1], whole=whole)
    again = replace(second.turns[1], observation="observation 0")
    batch = make_batch([first, replace(second, turns=(second.turns[0], again))])
    zero, one = stable_number("observation 0"), stable_number("observation 1")
    assert batch.anchor[batch.action_mask].tolist() == [zero, zero, one, zero, zero]
    assert (batch.anchor[~batch.action_mask] == -1).all()


def test_episodes_that_a_limit_on_tokens_cut_off_are_marked_on_all_their_rows() -> None:
    cut = episode(0, [1, 2], whole=False)
    cut = replace(cut, turns=(cut.turns[0], replace(cut.turns[1], stopped="length")))
    resumed = episode(1, [1, 2], whole=False)
    resumed = replace(resumed, turns=(replace(resumed.turns[0], stopped="length"), resumed.turns[1]))
    full, ended = episode(2, [1], ending=Ending.CONTEXT_FULL), episode(3, [1], ending=Ending.MAX_TURNS)
    batch = make_batch([cut, resumed, full, ended])
    assert batch.truncated.tolist() == [True, True, False, False, True, False]


def test_the_greedy_policys_returns_go_to_the_rows_of_their_group() -> None:
    played = [episode(0, [1, 1], group=4, whole=False), episode(1, [1], group=9), episode(2, [1], group=5)]
    baseline = make_batch(played, baselines={9: 0.5, 4: 0.25}).baseline
    assert baseline is not None
    assert baseline[:3].tolist() == [0.25, 0.25, 0.5]
    assert math.isnan(float(baseline[3]))
    assert make_batch(played).baseline is None


def test_selecting_and_moving_take_every_field_along() -> None:
    batch = make_batch([episode(0, [1]), episode(1, [3])], baselines={0: 0.5})
    tokens = torch.arange(batch.input_ids.numel()).reshape(batch.input_ids.shape).float()
    names = ("old_logprobs", "old_entropy", "ref_logprobs", "ref_kl", "values")
    batch = replace(batch, **{name: tokens + number for number, name in enumerate(names)})
    part = batch.select(torch.tensor([0])).to(torch.device("cpu"))
    assert {field.name for field in fields(part) if getattr(part, field.name) is None} == set()
    for number, name in enumerate(names):
        assert getattr(part, name).tolist() == [[number, 1 + number, 2 + number]]
    assert part.anchor.shape == (1, 3)
    assert part.truncated.shape == part.task.shape == (1,)


def test_each_action_token_carries_the_version_of_its_turns_weights() -> None:
    made = episode(0, [2, 1])
    turns = tuple(replace(turn, policy_version=version) for turn, version in zip(made.turns, (3, 4), strict=True))
    batch = make_batch([replace(made, turns=turns), episode(1, [1])])
    assert batch.policy_version.tolist() == [[-1, -1, 3, 3, -1, -1, 4], [-1, -1, 0, -1, -1, -1, -1]]
