import math
from collections.abc import Sequence

import pytest
import torch

from agentrl.loss import Correction, correct
from agentrl.loss.correction import binary_kl

NAN, INF = math.nan, math.inf


def corrected(
    config: Correction, *ratios: Sequence[float], trajectory: Sequence[int] | None = None
) -> tuple[list[list[float]], list[list[bool]]]:
    """Gives weights and kept tokens of rows whose tokens have these pi_old / pi_rollout; the rest of a row is NaN."""
    width = max(len(row) for row in ratios)
    ratio = torch.tensor([[*row, *[NAN] * (width - len(row))] for row in ratios], dtype=torch.float64)
    rollout = torch.full_like(ratio, -3.0)
    owner = torch.arange(len(ratios)) if trajectory is None else torch.tensor(trajectory)
    weight, stays = correct(config, rollout + ratio.log(), rollout, ~ratio.isnan(), owner)
    return weight.tolist(), stays.tolist()


def close(*values: float) -> list[object]:
    return [pytest.approx(value) for value in values]


def test_token_weights_are_moved_to_their_bounds() -> None:
    weights, stays = corrected(Correction(level="token", low=0.5, high=2.0), [4.0, 0.1, 1.5], [1.0])
    assert weights == [close(2.0, 0.5, 1.5), close(1.0, 0, 0)]
    assert stays == [[True] * 3, [True, False, False]]


def test_token_weights_out_of_bounds_can_drop_their_token() -> None:
    config = Correction(level="token", low=0.5, high=2.0, outside="mask")
    weights, stays = corrected(config, [4.0, 0.1, 1.5], [1.0])
    assert stays == [[False, False, True], [True, False, False]]
    assert weights[0][2] == pytest.approx(1.5)


def test_without_bounds_a_weight_is_the_ratio_itself() -> None:
    weights, stays = corrected(Correction(level="token", high=None), [50.0, 1e-3])
    assert weights == [close(50.0, 1e-3)]
    assert stays == [[True, True]]


@pytest.mark.parametrize(
    ("config", "first", "second"),
    [
        (Correction(level="sequence", high=None), 4 * 0.5 * 0.25, 3.0),
        (Correction(level="geometric", high=None), 0.5 ** (1 / 3), 3.0),
        (Correction(level="sequence", low=0.8), 0.8, 2.0),
        (Correction(level="geometric", low=0.8), 0.8, 2.0),
    ],
    ids=["sequence", "geometric", "sequence clipped", "geometric clipped"],
)
@pytest.mark.parametrize("split", [False, True])
def test_a_trajectory_has_one_weight_over_all_its_rows(
    config: Correction, first: float, second: float, split: bool
) -> None:
    rows, owner = ([[4.0], [0.5, 0.25], [3.0]], [0, 0, 1]) if split else ([[4.0, 0.5, 0.25], [3.0]], [0, 1])
    weights, stays = corrected(config, *rows, trajectory=owner)
    expected = [[first] * len(row) for row in rows[:-1]] + [[second]]
    for weight, stay, wanted in zip(weights, stays, expected, strict=True):
        assert weight == close(*wanted, *[0] * (len(weight) - len(wanted)))
        assert sum(stay) == len(wanted)


@pytest.mark.parametrize(("level", "lost"), [("sequence", [False, True]), ("geometric", [False, False])])
def test_a_trajectory_out_of_bounds_can_be_dropped_whole(level: str, lost: list[bool]) -> None:
    config = Correction.model_validate({"level": level, "low": 0.6, "high": 2.0, "outside": "mask"})
    _, stays = corrected(config, [2.0, 0.5], [0.7, 0.7])  # products 1 and 0.49, means 1 and 0.7
    assert [not any(stay) for stay in stays] == lost


def test_one_token_can_veto_its_whole_trajectory() -> None:
    weights, stays = corrected(Correction(veto=0.1), [1.0, 0.09], [2.0, 2.0], [0.11, 1.0], trajectory=[0, 0, 1])
    assert stays == [[False] * 2, [False] * 2, [True] * 2]
    assert weights == [[1, 1]] * 3


def test_the_binary_kl_is_the_naive_formula() -> None:
    p, q = (
        torch.rand(2, 50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 0.98 + 0.01
    ).unbind()
    found = binary_kl(p.log(), q.log(), torch.ones_like(p, dtype=torch.bool))
    naive = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
    torch.testing.assert_close(found, naive, rtol=1e-10, atol=1e-14)


def test_the_binary_kl_of_a_certain_token_is_that_of_its_probability_alone() -> None:
    logprobs, other = torch.tensor([[0.0, 0.0, NAN]]), torch.tensor([[math.log(0.5), 0.0, INF]])
    found = binary_kl(logprobs, other, torch.tensor([[True, True, False]]))
    assert found.tolist() == [[pytest.approx(math.log(2)), 0, 0]]
    assert binary_kl(other, logprobs, torch.tensor([[True, True, False]])).isfinite().all()


@pytest.mark.parametrize("split", [False, True])
def test_a_trajectory_too_far_from_the_engine_on_average_is_dropped_whole(split: bool) -> None:
    p, q = [0.5, 0.8], [0.4, 0.8]  # of the engine and of the trainer; the second token adds nothing
    mean = (0.5 * math.log(0.5 / 0.4) + 0.5 * math.log(0.5 / 0.6)) / 2
    shape, owner = ((3, 1), [0, 0, 1]) if split else ((2, 2), [0, 1])
    rollout, old = (
        torch.tensor([*x, 0.9, 0.9][: math.prod(shape)], dtype=torch.float64).log().reshape(shape) for x in (p, q)
    )
    mask = torch.ones(shape, dtype=torch.bool)
    for limit, stays in ((mean - 1e-9, False), (mean + 1e-9, True)):
        kept = correct(Correction(max_divergence=limit), old, rollout, mask, torch.tensor(owner))[1]
        assert kept[:-1].all() == stays
        assert kept[:-1].any() == stays
        assert kept[-1].all()


def test_weights_have_no_gradient() -> None:
    old = torch.full((1, 2), -1.0, requires_grad=True)
    mask = torch.ones(1, 2, dtype=torch.bool)
    weight, _ = correct(Correction(level="sequence"), old, torch.full((1, 2), -1.2), mask, torch.zeros(1).long())
    assert not weight.requires_grad


@pytest.mark.parametrize("config", [Correction(), Correction(level="token"), Correction(veto=1e-4, max_divergence=1.0)])
@pytest.mark.parametrize("stored", [NAN, INF, -INF])
def test_nothing_stored_off_the_mask_has_a_weight_or_changes_one(config: Correction, stored: float) -> None:
    mask = torch.tensor([[True, False], [False, False]])
    clean, rollout = torch.full((2, 2), -1.0), torch.full((2, 2), -1.1)
    dirty = clean.masked_fill(~mask, stored)
    for old, engine in ((dirty, rollout), (clean, rollout.masked_fill(~mask, stored))):
        weight, stays = correct(config, old, engine, mask, torch.arange(2))
        expected, kept = correct(config, clean, rollout, mask, torch.arange(2))
        assert torch.equal(weight, expected)
        assert torch.equal(stays, kept)
        assert not (stays & ~mask).any()


def test_it_is_off_until_something_is_asked_for() -> None:
    assert not Correction().is_on
    assert all(one.is_on for one in (Correction(level="token"), Correction(veto=0.1), Correction(max_divergence=0.1)))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Correction(), []),
        (Correction(level="token", low=0.5, high=2.0, outside="mask"), []),
        (Correction(veto=1e-4), []),
        (Correction(high=3.0), [("correction.high", "no effect at level none; set level token, or leave it out")]),
        (
            Correction(low=0.1, outside="mask"),
            [
                ("correction.low", "no effect at level none; set level token, or leave it out"),
                ("correction.outside", "no effect at level none; set level token, or leave it out"),
            ],
        ),
        (
            Correction(level="token", high=None, outside="mask"),
            [("correction.outside", "mask has no effect without bounds; set low or high, or clip")],
        ),
        (
            Correction(level="token", low=3.0, high=2.0),
            [("correction.low", "3.0 is above correction.high 2.0; swap them")],
        ),
    ],
)
def test_choices_without_effect_are_problems(config: Correction, expected: list[tuple[str, str]]) -> None:
    assert config.problems() == expected
