import pytest
import torch

from agentrl.loss import Aggregate, sum_by, token_weights

ROWS = torch.arange(2)
MASK = torch.tensor([[True, True, True, False], [True, False, False, False]])  # 3 tokens and 1


@pytest.mark.parametrize(
    ("aggregate", "first", "second"),
    [
        ("token_mean", 1 / 4, 1 / 4),
        ("seq_mean_token_mean", 1 / 6, 1 / 2),
        ("seq_mean_token_sum", 1 / 2, 1 / 2),
        ("seq_mean_token_sum_norm", 1 / 20, 1 / 20),
        ("class_balanced", 1 / 6, 1 / 2),  # one trajectory in each class: 1 / (2 * 1 * T)
    ],
)
def test_weights_of_three_tokens_and_one(aggregate: Aggregate, first: float, second: float) -> None:
    positive = torch.tensor([True, False])
    weights = token_weights(aggregate, MASK, ROWS, positive=positive, horizon=10)
    expected = torch.tensor([[first, first, first, 0], [second, 0, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=1e-15, atol=0)


def test_a_group_token_mean_weighs_each_token_of_a_group_alike_and_each_group_alike() -> None:
    mask = torch.tensor([[True, True], [True, False], [True, True], [False, False]])
    group = torch.tensor([7, 2, 7, 5])  # 4 tokens in group 7, 1 in group 2; group 5 has none and does not count
    weights = token_weights("group_token_mean", mask, torch.arange(4), group=group)
    assert weights.tolist() == [[1 / 8, 1 / 8], [1 / 2, 0], [1 / 8, 1 / 8], [0, 0]]


def test_each_class_gets_half_of_the_weight() -> None:
    positive = torch.tensor([True, False, False, False])
    mask = torch.ones(4, 5, dtype=torch.bool)
    weights = token_weights("class_balanced", mask, torch.arange(4), positive=positive)
    assert float(weights[0].sum()) == pytest.approx(0.5)
    assert float(weights[1:].sum()) == pytest.approx(0.5)


def test_an_empty_class_adds_nothing_and_the_other_keeps_its_half() -> None:
    weights = token_weights("class_balanced", MASK, ROWS, positive=torch.tensor([False, False]))
    assert float(weights.sum()) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "aggregate", ["token_mean", "group_token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "class_balanced"]
)
def test_weights_are_those_of_the_trajectory_however_many_rows_it_has(aggregate: Aggregate) -> None:
    whole = torch.ones(2, 6, dtype=torch.bool)
    rows = torch.ones(3, 3, dtype=torch.bool)  # trajectory 0 in two rows, trajectory 1 with 3 tokens in one
    whole[1, 3:] = False
    positive, group = torch.tensor([True, False]), torch.tensor([4, 9])
    one = token_weights(aggregate, whole, torch.tensor([0, 1]), positive=positive, group=group)
    owner = torch.tensor([0, 0, 1])
    two = token_weights(aggregate, rows, owner, positive=positive[owner], group=group[owner])
    assert torch.equal(one[0], two[:2].flatten())
    assert torch.equal(one[1, :3], two[2])


def test_trajectories_without_action_tokens_are_not_counted() -> None:
    mask = torch.tensor([[True], [False], [False]])
    positive = torch.tensor([True, True, False])
    cases: list[tuple[Aggregate, float]] = [("seq_mean_token_mean", 1.0), ("class_balanced", 0.5)]
    for aggregate, expected in cases:
        weights = token_weights(aggregate, mask, torch.arange(3), positive=positive)
        assert weights.flatten().tolist() == [expected, 0, 0]


def test_a_row_without_action_tokens_does_not_change_its_trajectorys_class() -> None:
    mask = torch.tensor([[True], [False], [True]])
    positive = torch.tensor([True, False, False])  # the second row has no token that could show its class
    weights = token_weights("class_balanced", mask, torch.tensor([0, 0, 1]), positive=positive)
    assert weights.flatten().tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize(
    ("aggregate", "missing"),
    [("group_token_mean", "group"), ("seq_mean_token_sum_norm", "horizon"), ("class_balanced", "class")],
)
def test_what_a_weight_is_made_of_must_be_given(aggregate: Aggregate, missing: str) -> None:
    with pytest.raises(ValueError, match=f"{aggregate} needs .*{missing}"):
        token_weights(aggregate, MASK, ROWS)


def test_sums_by_owner_take_each_value_once() -> None:
    values = torch.tensor([1.0, 2.0, 4.0, 8.0])
    assert sum_by(values, torch.tensor([2, 0, 2, 2])).tolist() == [2, 0, 13]
    assert sum_by(values[:0], torch.tensor([], dtype=torch.int64)).tolist() == []
