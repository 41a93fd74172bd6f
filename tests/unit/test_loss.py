import math

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from agentrl.loss import Aggregate, LossConfig, LossOutput, kl_estimate, policy_loss, token_weights

ALL = torch.ones(1, 1, dtype=torch.bool)
ROWS = torch.arange(2)
MASK = torch.tensor([[True, True, True, False], [True, False, False, False]])  # 3 tokens and 1
NAN, INF = math.nan, math.inf


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64)


def one_token(config: LossConfig, *, ratio: float, advantage: float) -> tuple[float, float]:
    """Gives the objective of a token and its derivative by log pi."""
    logprob = row(math.log(ratio) - 1).requires_grad_()
    output = policy_loss(
        config,
        logprobs=logprob,
        old_logprobs=row(-1.0),
        advantages=row(advantage),
        action_mask=ALL,
        keep=ALL,
        weights=row(1.0),
    )
    output.loss.backward()
    assert logprob.grad is not None
    return -output.loss.item(), -logprob.grad.item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "objective", "derivative"),
    [
        (1.1, 2.0, 2.2, 2.2),  # inside
        (1.5, 2.0, 2 * 1.3, 0.0),  # already raised enough
        (0.5, 2.0, 1.0, 1.0),  # lowered against the advantage: no bound
        (0.5, -2.0, -2 * 0.8, 0.0),  # already lowered enough
        (1.5, -2.0, -3.0, -3.0),  # raised against the advantage: no bound
        (1.5, 0.0, 0.0, 0.0),
    ],
)
def test_the_clip_bounds_only_what_raises_the_objective(
    ratio: float, advantage: float, objective: float, derivative: float
) -> None:
    config = LossConfig(clip_low=0.2, clip_high=0.3)
    assert one_token(config, ratio=ratio, advantage=advantage) == pytest.approx((objective, derivative), rel=1e-12)


def test_without_clips_the_objective_is_ratio_times_advantage() -> None:
    config = LossConfig(clip_low=None, clip_high=None)
    assert one_token(config, ratio=7.0, advantage=2.0) == pytest.approx((14.0, 14.0))
    assert one_token(config, ratio=0.1, advantage=-2.0) == pytest.approx((-0.2, -0.2))


def test_the_dual_clip_bounds_the_loss_of_a_token_that_grew_against_its_advantage() -> None:
    config = LossConfig(dual_clip=3.0)
    assert one_token(config, ratio=2.5, advantage=-2.0) == pytest.approx((-5.0, -5.0))
    assert one_token(config, ratio=4.0, advantage=-2.0) == pytest.approx((-6.0, 0.0))
    assert one_token(config, ratio=4.0, advantage=2.0) == pytest.approx((2.4, 0.0))


def test_without_a_ratio_the_objective_is_the_log_probability() -> None:
    config = LossConfig(ratio="none", clip_low=None, clip_high=None)
    assert one_token(config, ratio=math.exp(-1), advantage=3.0) == pytest.approx((-6.0, 3.0))  # log pi = -2


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


def test_each_class_gets_half_of_the_weight() -> None:
    positive = torch.tensor([True, False, False, False])
    mask = torch.ones(4, 5, dtype=torch.bool)
    weights = token_weights("class_balanced", mask, torch.arange(4), positive=positive)
    assert float(weights[0].sum()) == pytest.approx(0.5)
    assert float(weights[1:].sum()) == pytest.approx(0.5)


def test_an_empty_class_adds_nothing_and_the_other_keeps_its_half() -> None:
    weights = token_weights("class_balanced", MASK, ROWS, positive=torch.tensor([False, False]))
    assert float(weights.sum()) == pytest.approx(0.5)


@pytest.mark.parametrize("aggregate", ["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "class_balanced"])
def test_weights_are_those_of_the_trajectory_however_many_rows_it_has(aggregate: Aggregate) -> None:
    whole = torch.ones(2, 6, dtype=torch.bool)
    rows = torch.ones(3, 3, dtype=torch.bool)  # trajectory 0 in two rows, trajectory 1 with 3 tokens in one
    whole[1, 3:] = False
    positive = torch.tensor([True, False])
    one = token_weights(aggregate, whole, torch.tensor([0, 1]), positive=positive)
    two = token_weights(aggregate, rows, torch.tensor([0, 0, 1]), positive=positive[[0, 0, 1]])
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


def test_the_divisor_of_a_normalized_sum_must_be_given() -> None:
    with pytest.raises(ValidationError, match="needs a horizon"):
        LossConfig(aggregate="seq_mean_token_sum_norm")


def test_k1_is_refused_as_a_loss() -> None:
    with pytest.raises(ValidationError, match="'k2' or 'k3'"):
        LossConfig.model_validate({"kl_estimator": "k1"})


def test_kl_estimates_by_hand() -> None:
    logprobs, reference, mask = row(-1.0, 0.0), row(-1.5, NAN), torch.tensor([[True, False]])
    assert kl_estimate("k1", logprobs, reference, mask).tolist() == [[0.5, 0.0]]
    assert kl_estimate("k2", logprobs, reference, mask).tolist() == [[0.125, 0.0]]
    assert kl_estimate("k3", logprobs, reference, mask).tolist() == [[pytest.approx(math.exp(-0.5) - 0.5), 0.0]]


def test_the_kl_loss_has_its_own_coefficient_and_the_weights_of_the_policy_loss() -> None:
    logprobs = row(-1.0, -2.0).requires_grad_()
    ones = torch.ones(1, 2, dtype=torch.bool)
    output = policy_loss(
        LossConfig(kl_estimator="k2", kl_coef=0.1),
        logprobs=logprobs,
        old_logprobs=logprobs.detach(),
        advantages=row(0.0, 0.0),
        action_mask=ones,
        keep=torch.tensor([[True, False]]),  # a filtered token keeps its KL
        weights=row(0.25, 0.75),
        ref_logprobs=row(-1.4, -2.2),
    )
    output.loss.backward()
    assert float(output.sums["kl_loss"]) == pytest.approx(0.1 * (0.25 * 0.4**2 / 2 + 0.75 * 0.2**2 / 2))
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[pytest.approx(0.1 * 0.25 * 0.4), pytest.approx(0.1 * 0.75 * 0.2)]]


def some_loss(mask: Tensor, keep: Tensor, logprobs: Tensor, weights: Tensor) -> LossOutput:
    return policy_loss(
        LossConfig(),
        logprobs=logprobs,
        old_logprobs=torch.full_like(logprobs, -1.0).masked_fill(~mask, NAN),
        advantages=torch.ones_like(logprobs).masked_fill(~mask, NAN),
        action_mask=mask,
        keep=keep,
        weights=weights.masked_fill(~mask, INF),
        ref_logprobs=torch.full_like(logprobs, -INF),
    )


def test_a_filtered_token_has_no_gradient_and_does_not_rescale_the_others() -> None:
    weights = token_weights("seq_mean_token_mean", MASK, ROWS)
    keep = MASK.clone()
    keep[0, 1] = False
    logprobs = torch.full((2, 4), -1.0, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(some_loss(MASK, MASK, logprobs, weights).loss, logprobs)
    (filtered,) = torch.autograd.grad(some_loss(MASK, keep, logprobs, weights).loss, logprobs)
    expected[0, 1] = 0
    assert torch.equal(filtered, expected)


@pytest.mark.parametrize("stored", [NAN, INF, -INF])
def test_nothing_stored_off_the_mask_reaches_loss_or_gradient(stored: float) -> None:
    logprobs = torch.full((2, 4), -1.0, dtype=torch.float64).masked_fill(~MASK, stored).requires_grad_()
    output = some_loss(MASK, MASK, logprobs, token_weights("token_mean", MASK, ROWS))
    output.loss.backward()
    assert output.loss.item() == pytest.approx(-1.0)
    assert logprobs.grad is not None
    assert torch.equal(logprobs.grad, torch.where(MASK, -0.25, 0.0).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_log_ratios_stay_finite(dtype: torch.dtype) -> None:
    logprobs = torch.tensor([[-1e4, 1e4, -200.0, 200.0]], dtype=dtype, requires_grad=True)
    ones = torch.ones(1, 4, dtype=torch.bool)
    output = policy_loss(
        LossConfig(kl_estimator="k3", kl_coef=1.0),
        logprobs=logprobs,
        old_logprobs=torch.zeros_like(logprobs),
        advantages=torch.tensor([[1.0, -1.0, -1.0, 1.0]], dtype=dtype),
        action_mask=ones,
        keep=ones,
        weights=torch.full((1, 4), 0.25, dtype=dtype),
        ref_logprobs=torch.zeros_like(logprobs),
    )
    output.loss.backward()
    assert logprobs.grad is not None
    assert output.loss.isfinite()
    assert logprobs.grad.isfinite().all()
    assert all(value.isfinite() for value in output.sums.values())


def test_sums_of_micro_batches_add_up_to_those_of_the_whole() -> None:
    torch.manual_seed(0)
    logprobs, weights = torch.rand(2, 4, dtype=torch.float64) - 2, token_weights("token_mean", MASK, ROWS)
    whole = some_loss(MASK, MASK, logprobs, weights)
    parts = [some_loss(MASK[i : i + 1], MASK[i : i + 1], logprobs[i : i + 1], weights[i : i + 1]) for i in (0, 1)]
    assert float(whole.loss) == pytest.approx(sum(float(part.loss) for part in parts), rel=1e-14)
    for name, value in whole.sums.items():
        assert float(value) == pytest.approx(sum(float(part.sums[name]) for part in parts), rel=1e-14)


def test_counts_of_kept_and_clipped_tokens() -> None:
    logprobs = torch.tensor([[-1.0, -0.5, -0.1, 0.0], [-3.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    keep = MASK.clone()
    keep[0, 2] = False  # clipped, but filtered
    sums = some_loss(MASK, keep, logprobs, token_weights("token_mean", MASK, ROWS)).sums
    assert (int(sums["kept"]), int(sums["clipped"])) == (3, 1)  # ratios e^0, e^0.5 and e^-2 at advantage 1
    k3 = sum(math.exp(x) - 1 - x for x in (0, 0.5, 0.9, -2))
    assert float(sums["approx_kl"]) == pytest.approx(k3)
