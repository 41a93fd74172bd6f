from dataclasses import replace

import pytest
import torch

from agentrl.algorithms._returns import Sequences, generalized_advantages, returns_to_go
from agentrl.batch import Batch, make_batch
from agentrl.trajectory import Trajectory
from tests.episodes import episode
from tests.unit.algorithms.steps import filled


def paid(trajectory: Trajectory, *rewards: float) -> Trajectory:
    """Gives the episode with these rewards of its turns."""
    turns = tuple(replace(turn, reward=reward) for turn, reward in zip(trajectory.turns, rewards, strict=True))
    return replace(trajectory, turns=turns)


def two(*, whole: bool = True) -> Batch:
    """Gives an episode of turns of 2, 1 and 1 tokens that pay 1, 0 and 4, and one of a token that pays 3."""
    return make_batch([paid(episode(0, [2, 1, 1], whole=whole), 1, 0, 4), paid(episode(1, [1]), 3)])


def in_order(values: torch.Tensor, batch: Batch) -> list[float]:
    """Gives the values of the action tokens by their ids, which count up."""
    order = batch.input_ids[batch.action_mask].argsort()
    return values[batch.action_mask][order].tolist()


@pytest.mark.parametrize("whole", [True, False])
def test_a_reward_reaches_every_token_up_to_its_turn_and_observations_cost_no_discount(whole: bool) -> None:
    batch = two(whole=whole)
    assert in_order(returns_to_go(batch, 1.0), batch) == [5, 5, 4, 4, 3]
    assert in_order(returns_to_go(batch, 0.5), batch) == [
        0 + 0.5 * (1 + 0.5 * (0 + 0.5 * 4)),
        1 + 0.5 * (0 + 0.5 * 4),
        0 + 0.5 * 4,
        4,
        3,
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_the_successor_of_an_action_token_is_the_next_action_token(whole: bool) -> None:
    batch = two(whole=whole)
    values = filled(batch, [[1.0, 2.0, 4.0, 8.0], [16.0]] if whole else [[1.0, 2.0], [4.0], [8.0], [16.0]])
    gamma, lam = 0.5, 0.8
    errors = [0 + gamma * 2 - 1, 1 + gamma * 4 - 2, 0 + gamma * 8 - 4, 4 - 8]
    expected = [errors[-1]]
    for error in reversed(errors[:-1]):
        expected.insert(0, error + gamma * lam * expected[0])
    found = generalized_advantages(replace(batch, values=values), gamma=gamma, gae_lambda=lam)
    assert in_order(found, batch) == pytest.approx([*expected, 3 - 16])
    assert not found[~batch.action_mask].any()


def test_with_lambda_one_advantages_are_returns_less_values_and_with_zero_one_step_errors() -> None:
    batch = two()
    batch = replace(batch, values=filled(batch, [[1.0, 2.0, 4.0, 8.0], [16.0]]))
    full = generalized_advantages(batch, gamma=1.0, gae_lambda=1.0)
    assert in_order(full, batch) == [5 - 1, 5 - 2, 4 - 4, 4 - 8, 3 - 16]
    near = generalized_advantages(batch, gamma=1.0, gae_lambda=0.0)
    assert in_order(near, batch) == [2 - 1, 1 + 4 - 2, 8 - 4, 4 - 8, 3 - 16]


def test_tokens_are_found_in_the_order_they_were_sampled_wherever_their_rows_lie() -> None:
    batch = two(whole=False).select(torch.tensor([3, 2, 0, 1]))
    sequences = Sequences.of(batch)
    assert sequences.lengths.tolist() == [4, 1]
    assert sequences.gather(batch.input_ids.double()).tolist() == [[100, 101, 102, 103], [200, 0, 0, 0]]
    table = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 0.0, 0.0]])
    assert in_order(sequences.scatter(table, batch), batch) == [1, 2, 3, 4, 5]


def test_an_empty_batch_has_no_returns() -> None:
    assert not returns_to_go(make_batch([]), 0.5).numel()
