from dataclasses import fields

import torch

from agentrl.batch import make_batch
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
