import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from agentrl.loss import LossConfig, LossOutput, policy_loss, token_weights

MASK = torch.tensor([[True, True, True, False], [True, False, False, False]])  # 3 tokens and 1
ROWS = torch.arange(2)
NAN, INF = math.nan, math.inf
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Computed:
    """A loss and its gradient by log pi, row by row."""

    loss: float
    gradient: list[list[float]]
    sums: dict[str, Tensor]


def padded(rows: Rows) -> Tensor:
    """Gives rows as a tensor, NaN where they have ended."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[NAN] * (width - len(row))] for row in rows], dtype=torch.float64)


def computed(knobs: dict[str, Any], ratios: Rows, advantages: Sequence[float], **given: Any) -> Computed:
    """Gives the loss of rows whose tokens have these ratios to the old policy, which said -1 of each.

    Rows are trajectories unless `trajectory` says otherwise, and count alike, whatever their length.
    """
    ratio = padded(ratios)
    mask = ~ratio.isnan()
    owner = torch.tensor(given.pop("trajectory", range(len(ratios))))
    logprobs = (ratio.log() - 1).requires_grad_()
    if "ref_ratios" in given:  # pi / ref
        given["ref_logprobs"] = logprobs.detach() - padded(given.pop("ref_ratios")).log()
    output = policy_loss(
        LossConfig(**knobs),
        logprobs=logprobs,
        old_logprobs=torch.full_like(ratio, -1.0).masked_fill(~mask, INF),
        advantages=torch.tensor(advantages, dtype=torch.float64)[:, None].expand_as(ratio),
        action_mask=mask,
        keep=given.pop("keep", mask),
        weights=token_weights("seq_mean_token_mean", mask, owner),
        trajectory=owner,
        **given,
    )
    output.loss.backward()
    assert logprobs.grad is not None
    assert not logprobs.grad[~mask].any()
    return Computed(
        output.loss.item(), [row[m].tolist() for row, m in zip(logprobs.grad, mask, strict=True)], output.sums
    )


def one_token(*, ratio: float, advantage: float, **knobs: Any) -> tuple[float, float]:
    """Gives the objective of a token and its derivative by log pi."""
    found = computed(knobs, [[ratio]], [advantage])
    return -found.loss, -found.gradient[0][0]


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
    found = one_token(ratio=ratio, advantage=advantage, clip_low=0.2, clip_high=0.3)
    assert found == pytest.approx((objective, derivative), rel=1e-12)


def test_without_clips_the_objective_is_ratio_times_advantage() -> None:
    assert one_token(ratio=7.0, advantage=2.0, clip_low=None, clip_high=None) == pytest.approx((14.0, 14.0))
    assert one_token(ratio=0.1, advantage=-2.0, clip_low=None, clip_high=None) == pytest.approx((-0.2, -0.2))


def test_the_dual_clip_bounds_the_loss_of_a_token_that_grew_against_its_advantage() -> None:
    assert one_token(ratio=2.5, advantage=-2.0, dual_clip=3.0) == pytest.approx((-5.0, -5.0))
    assert one_token(ratio=4.0, advantage=-2.0, dual_clip=3.0) == pytest.approx((-6.0, 0.0))
    assert one_token(ratio=4.0, advantage=2.0, dual_clip=3.0) == pytest.approx((2.4, 0.0))


def test_without_a_ratio_the_objective_is_the_log_probability() -> None:
    found = computed({"ratio": "none"}, [[math.exp(-1)]], [3.0])  # log pi = -2
    assert (found.loss, found.gradient) == (pytest.approx(6.0), [[-3.0]])


def test_the_sequence_ratio_is_the_geometric_mean_of_a_trajectorys_ratios() -> None:
    ratios = [[2.0, 0.5, 8.0], [1.0]]  # means 2 and 1, and 1/2 of the weight each
    free = computed({"ratio": "sequence", "clip_low": None, "clip_high": None}, ratios, [3.0, -1.0])
    assert free.loss == pytest.approx(-(2 * 3 - 1 * 1) / 2)
    assert free.gradient == [[pytest.approx(-2 * 3 / 3 / 2)] * 3, [pytest.approx(0.5)]]
    clipped = computed({"ratio": "sequence", "clip_high": 0.5}, ratios, [3.0, -1.0])
    assert clipped.loss == pytest.approx(-(1.5 * 3 - 1 * 1) / 2)
    assert clipped.gradient == [[0, 0, 0], [pytest.approx(0.5)]]
    assert int(clipped.sums["clipped"]) == 3


def test_the_product_ratio_is_that_of_the_whole_trajectory() -> None:
    found = computed({"ratio": "product", "clip_low": None, "clip_high": None}, [[2.0, 0.5, 8.0]], [3.0])
    assert found.loss == pytest.approx(-8 * 3)
    assert found.gradient == [[pytest.approx(-24)] * 3]
    assert computed({"ratio": "product", "clip_high": 6.0}, [[2.0, 0.5, 8.0]], [3.0]).loss == pytest.approx(-7 * 3)


def test_the_geometric_ratio_clips_each_log_ratio_on_the_side_of_the_advantage() -> None:
    knobs = {"ratio": "geometric", "clip_low": 0.3, "clip_high": 0.4}
    up, down = math.exp(1.0), math.exp(-1.0)
    good = computed(knobs, [[up, down]], [1.0])  # log-ratios 0.4 and -1
    assert good.loss == pytest.approx(-math.exp(-0.3))
    assert good.gradient == [[0, pytest.approx(-math.exp(-0.3) / 2)]]
    bad = computed(knobs, [[up, down]], [-1.0])  # log-ratios 1 and -0.3
    assert bad.loss == pytest.approx(math.exp(0.35))
    assert bad.gradient == [[pytest.approx(math.exp(0.35) / 2), 0]]
    assert int(good.sums["clipped"]) == int(bad.sums["clipped"]) == 1


@pytest.mark.parametrize("ratio", ["sequence", "product", "geometric"])
def test_the_rows_of_a_trajectory_have_one_ratio(ratio: str) -> None:
    whole = computed({"ratio": ratio}, [[1.2, 0.7, 0.9], [1.1, 1.0]], [1.0, -1.0])
    split = computed({"ratio": ratio}, [[1.2], [1.1, 1.0], [0.7, 0.9]], [1.0, -1.0, 1.0], trajectory=[0, 1, 0])
    assert split.loss == pytest.approx(whole.loss, rel=1e-14)
    assert split.gradient[0] + split.gradient[2] == pytest.approx(whole.gradient[0], rel=1e-14)
    assert split.gradient[1] == pytest.approx(whole.gradient[1], rel=1e-14)


def test_cispo_weighs_the_log_probability_by_a_clipped_constant_ratio() -> None:
    found = computed({"surrogate": "cispo", "clip_low": 0.2, "clip_high": 4.0}, [[9.0, 2.0, 0.5]], [3.0])
    weights = [5.0, 2.0, 0.8]
    logs = [math.log(9.0) - 1, math.log(2.0) - 1, math.log(0.5) - 1]
    assert found.loss == pytest.approx(-sum(3 * w * x for w, x in zip(weights, logs, strict=True)) / 3)
    assert found.gradient == [pytest.approx([-w for w in weights])]  # -A w / 3
    assert int(found.sums["clipped"]) == 2


def test_the_quadratic_surrogate_pulls_the_ratio_back_to_one() -> None:
    knobs: dict[str, Any] = {"surrogate": "quadratic", "quadratic_coef": 4.0}
    assert one_token(ratio=1.25, advantage=2.0, **knobs) == pytest.approx((2.5 - 4 / 2 / 16, 1.25 * (2 - 4 * 0.25)))
    assert one_token(ratio=1.5, advantage=2.0, **knobs) == pytest.approx((3 - 4 / 2 / 4, 0.0))  # the optimum, 1 + A/4
    assert one_token(ratio=1.5, advantage=-2.0, **knobs) == pytest.approx((-3 - 4 / 2 / 4, 1.5 * (-2 - 4 * 0.5)))


def test_gvpo_regresses_the_log_ratios_of_a_group_on_its_advantages() -> None:
    knobs: dict[str, Any] = {"surrogate": "gvpo", "gvpo_coef": 0.5}
    found = computed(knobs, [[2.0, 2.0], [1.0]], [0.5, -0.5], group=torch.tensor([3, 3]))
    implied = 0.5 * 2 * math.log(2)  # of the first; the second implies 0, and their mean is half of it
    miss = implied / 2 - 0.5
    assert found.loss == pytest.approx((miss**2 / 2 + miss**2 / 2) / (2 - 1))
    assert found.gradient == [[pytest.approx(0.5 * miss)] * 2, [pytest.approx(-0.5 * miss)]]


def test_gvpo_is_the_mean_over_groups_and_a_group_of_one_adds_nothing() -> None:
    knobs: dict[str, Any] = {"surrogate": "gvpo", "gvpo_coef": 1.0}
    ratios, advantages = [[math.exp(3)], [1.0], [1.0], [7.0]], [1.0, 0.0, -1.0, 0.0]
    found = computed(knobs, ratios, advantages, group=torch.tensor([0, 0, 0, 1]))
    misses = [3 - 1 - 1, 0 - 1 - 0, 0 - 1 + 1]  # log-ratios less their mean of 1, less the advantages
    assert found.loss == pytest.approx(sum(miss**2 / 2 for miss in misses) / (3 - 1) / 2)
    assert found.gradient == [[pytest.approx(miss / 2 / 2)] for miss in misses] + [[0]]  # the misses' mean is 0


def test_the_kl_loss_has_its_own_coefficient_and_the_weights_of_the_policy_loss() -> None:
    keep = torch.tensor([[True, False]])  # a filtered token keeps its KL
    knobs = {"kl_estimator": "k2", "kl_coef": 0.1}
    found = computed(knobs, [[1.0, 1.0]], [0.0], ref_ratios=[[math.exp(0.4), math.exp(0.2)]], keep=keep)
    assert found.loss == float(found.sums["kl_loss"]) == pytest.approx(0.1 * (0.4**2 / 2 + 0.2**2 / 2) / 2)
    assert found.gradient == [pytest.approx([0.1 * 0.4 / 2, 0.1 * 0.2 / 2])]


def test_k3_weighed_by_the_ratio_has_the_reverse_kls_gradient() -> None:
    knobs = {"kl_estimator": "k3", "kl_coef": 0.1, "kl_importance": True}
    found = computed(knobs, [[3.0]], [0.0], ref_ratios=[[2.0]])
    assert found.loss == pytest.approx(0.1 * 3 * (1 / 2 - 1 + math.log(2)))
    assert found.gradient == [[pytest.approx(0.1 * 3 * math.log(2))]]


RATIOS, REFERENCE = [[1.5, 1.0]], [[math.exp(0.3), math.exp(0.4)]]  # the first is clipped at advantage 1


def test_a_gate_turns_the_kl_off_where_the_surrogate_is_clipped() -> None:
    knobs = {"kl_estimator": "k2", "kl_coef": 0.1, "kl_gate": "clipped"}
    found = computed(knobs, RATIOS, [1.0], ref_ratios=REFERENCE)
    assert float(found.sums["kl_loss"]) == pytest.approx(0.1 * 0.4**2 / 2 / 2)
    assert found.gradient == [pytest.approx([0, -1 / 2 + 0.1 * 0.4 / 2])]


def test_a_gate_scales_the_kl_to_the_norm_that_the_clip_would_leave() -> None:
    knobs = {"kl_estimator": "k2", "kl_coef": 0.1, "kl_gate": "norm"}
    found = computed(knobs, RATIOS, [1.0], ref_ratios=REFERENCE)
    share = 0.4 / 0.5  # slopes 0.3 and 0.4: norm 0.5, of which 0.4 is not clipped
    assert float(found.sums["kl_loss"]) == pytest.approx(0.1 * share * (0.3**2 + 0.4**2) / 2 / 2)
    assert found.gradient == [pytest.approx([0.1 * share * 0.3 / 2, -1 / 2 + 0.1 * share * 0.4 / 2])]


def test_the_norm_of_a_kl_weighed_by_the_ratio_is_that_of_its_own_gradient() -> None:
    knobs = {"kl_estimator": "k3", "kl_coef": 0.1, "kl_gate": "norm", "kl_importance": True}
    found = computed(knobs, RATIOS, [1.0], ref_ratios=REFERENCE)
    slopes = [1.5 * 0.3, 1.0 * 0.4]
    share = 0.4 / math.hypot(*slopes)
    assert found.gradient == [pytest.approx([0.1 * share * slopes[0] / 2, -1 / 2 + 0.1 * share * slopes[1] / 2])]


def test_a_gate_without_a_kl_to_scale_changes_nothing() -> None:
    knobs = {"kl_estimator": "k2", "kl_coef": 0.1, "kl_gate": "norm"}
    found = computed(knobs, RATIOS, [1.0], ref_ratios=[[1.0, 1.0]])
    assert found.gradient == [pytest.approx([0, -1 / 2])]


def test_a_kl_in_the_reward_is_no_loss() -> None:
    knobs = {"kl_estimator": "k1", "kl_coef": 0.1, "kl_in": "reward"}
    found = computed(knobs, RATIOS, [1.0], ref_ratios=REFERENCE)
    assert float(found.sums["kl_loss"]) == 0
    assert found.gradient == computed({}, RATIOS, [1.0]).gradient


def test_k1_is_refused_as_a_loss() -> None:
    with pytest.raises(ValueError, match="k1 as a loss is noise around 0; use k2 or k3"):
        computed({"kl_estimator": "k1", "kl_coef": 0.1}, RATIOS, [1.0], ref_ratios=REFERENCE)


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


LOSSES: list[dict[str, Any]] = [
    *({"ratio": ratio} for ratio in ("token", "sequence", "geometric", "product", "none")),
    *({"surrogate": surrogate} for surrogate in ("cispo", "quadratic", "gvpo")),
    {"dual_clip": 3.0},
]
KLS: list[dict[str, Any]] = [
    {},
    *({"kl_estimator": "k3", "kl_coef": 1.0, "kl_gate": gate} for gate in ("none", "clipped", "norm")),
    {"kl_estimator": "k2", "kl_coef": 1.0, "kl_importance": True},
]


@pytest.mark.parametrize("stored", [NAN, INF, -INF])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda knobs: "-".join(map(str, knobs.values())))
@pytest.mark.parametrize("kl", KLS, ids=lambda knobs: "-".join(map(str, knobs.values())) or "no KL")
def test_nothing_stored_off_the_mask_reaches_loss_or_gradient(
    stored: float, loss: dict[str, Any], kl: dict[str, Any]
) -> None:
    def run(off: float) -> tuple[float, Tensor]:
        current, old, reference = (torch.full((2, 4), x).double().masked_fill(~MASK, off) for x in (-1.0, -1.05, -1.3))
        output = policy_loss(
            LossConfig(**loss, **kl),
            logprobs=current.requires_grad_(),
            old_logprobs=old,
            advantages=torch.tensor([[1.0], [-1.0]]).expand(2, 4).masked_fill(~MASK, off),
            action_mask=MASK,
            keep=MASK,
            weights=token_weights("token_mean", MASK, ROWS).masked_fill(~MASK, off),
            ref_logprobs=reference,
            group=torch.zeros(2, dtype=torch.int64),
        )
        output.loss.backward()
        assert current.grad is not None
        return output.loss.item(), current.grad

    (clean, expected), (dirty, found) = run(0.0), run(stored)
    assert dirty == clean
    assert torch.equal(found, expected)
    assert found[MASK].all()
    assert not found[~MASK].any()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda knobs: "-".join(map(str, knobs.values())))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_log_ratios_stay_finite(dtype: torch.dtype, loss: dict[str, Any]) -> None:
    logprobs = torch.tensor([[-1e4, 1e4, -200.0, 200.0]], dtype=dtype, requires_grad=True)
    ones = torch.ones(1, 4, dtype=torch.bool)
    output = policy_loss(
        LossConfig(kl_estimator="k3", kl_coef=1.0, **loss),
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


def test_a_kl_loss_without_a_reference_is_refused() -> None:
    one, everywhere = torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match="needs the reference"):
        policy_loss(
            LossConfig(kl_estimator="k2", kl_coef=0.1),
            logprobs=-one,
            old_logprobs=-one,
            advantages=one,
            action_mask=everywhere,
            keep=everywhere,
            weights=one,
        )
