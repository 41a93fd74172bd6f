import pytest
import torch

from agentrl.algorithms._groups import centered, group_std, left_out, returns_and_groups
from agentrl.batch import make_batch
from tests.episodes import episode


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_a_trajectory_counts_once_however_many_rows_it_has() -> None:
    batch = make_batch(
        [
            episode(0, [1, 1, 1], episode_return=3.0, group=7, whole=False),
            episode(1, [1], episode_return=1.0, group=7),
            episode(2, [1, 1], episode_return=5.0, group=2, whole=False),
        ]
    )
    returns, groups = returns_and_groups(batch)
    assert returns.tolist() == [3, 1, 5]
    assert groups[0] == groups[1] != groups[2]
    assert centered(returns, groups).tolist() == [1, -1, 0]


def test_interleaved_groups_are_told_apart() -> None:
    group = torch.tensor([0, 1, 0, 1, 1])
    assert centered(numbers(1, 10, 3, 20, 30), group).tolist() == [-1, -10, 1, 0, 10]
    assert group_std(numbers(1, 10, 3, 20, 30), group, ddof=1).tolist() == pytest.approx([2**0.5, 10, 2**0.5, 10, 10])
    assert group_std(numbers(1, 10, 3, 20, 30), group, ddof=0).tolist()[0] == pytest.approx(1)


@pytest.mark.parametrize("reward", [0.1, 1 / 3, 0.7, 0.9])
def test_a_group_of_equal_inexact_returns_gets_exactly_nothing(reward: float) -> None:
    returns = torch.full((7,), reward, dtype=torch.float32).double()
    assert not centered(returns, torch.zeros(7, dtype=torch.int64)).any()


def test_a_group_of_one_gets_nothing_or_its_return() -> None:
    returns, group = numbers(5, 1, 3), torch.tensor([0, 1, 1])
    assert centered(returns, group).tolist() == [0, -1, 1]
    assert centered(returns, group, singleton="keep").tolist() == [5, -1, 1]
    assert group_std(returns, group, ddof=1).tolist()[0] == 1


def test_leaving_itself_out_compares_with_the_others_of_the_group() -> None:
    returns, group = numbers(4, 1, 0, 7, 2), torch.tensor([0, 1, 1, 0, 1])
    assert left_out(returns, group).tolist() == pytest.approx([4 - 7, 1 - 1, 0 - 1.5, 7 - 4, 2 - 0.5])
    alone = torch.tensor([5, 1, 1, 0, 1])
    assert left_out(returns, alone).tolist()[0] == 0
    assert left_out(returns, alone, singleton="keep").tolist()[0] == 4
