from typing import Any

import pytest
from pydantic import ValidationError

from agentrl.loss import LossConfig

NO_CLIP = "no effect with surrogate {}, which has no clip; leave it out"
NO_RATIO = "no effect with ratio none, where the objective is log pi itself; leave it out"
NO_KL = "no effect without a KL estimator; leave it out, or set kl_estimator"
IN_REWARD = "no effect on a KL in the reward; leave it out, or set kl_in loss"
K3 = {"kl_estimator": "k3", "kl_coef": 0.1}
KNOBS = [
    ({"aggregate": "seq_mean_token_sum_norm"}, "aggregate: seq_mean_token_sum_norm needs a horizon"),
    ({"horizon": 9}, "horizon: no effect on aggregate token_mean; set seq_mean_token_sum_norm, or null"),
    ({"quadratic_coef": 2.0}, "quadratic_coef: no effect on surrogate clip; leave it out, or set quadratic"),
    ({"gvpo_coef": 2.0}, "gvpo_coef: no effect on surrogate clip; leave it out, or set gvpo"),
]
CLIPS = [
    ({"ratio": "none", "clip_low": 0.1}, f"clip_low: {NO_RATIO}"),
    ({"ratio": "none", "clip_high": 0.1}, f"clip_high: {NO_RATIO}"),
    ({"surrogate": "quadratic", "clip_low": 0.1}, f"clip_low: {NO_CLIP.format('quadratic')}"),
    ({"surrogate": "gvpo", "clip_high": 0.1}, f"clip_high: {NO_CLIP.format('gvpo')}"),
    ({"ratio": "none", "dual_clip": 3.0}, "dual_clip: no effect with ratio none, where the objective is log pi itself"),
    ({"surrogate": "quadratic", "dual_clip": 3.0}, "dual_clip: no effect with surrogate quadratic, which has no clip"),
    ({"surrogate": "cispo", "dual_clip": 3.0}, "dual_clip: no effect with surrogate cispo and ratio token; set null"),
    ({"ratio": "geometric", "dual_clip": 3.0}, "dual_clip: no effect with surrogate clip and ratio geometric"),
    *(
        ({"ratio": "none", "surrogate": one}, f"surrogate: {one} needs a ratio; set ratio token, or surrogate clip")
        for one in ("cispo", "quadratic", "gvpo")
    ),
    (
        {"ratio": "geometric", "surrogate": "cispo"},
        "surrogate: cispo is not defined for ratio geometric; set surrogate",
    ),
    ({"ratio": "product", "surrogate": "gvpo"}, "ratio: no effect on surrogate gvpo, which takes whole trajectories"),
]
KLS = [
    *(
        (one, f"{next(iter(one))}: {NO_KL}")
        for one in ({"kl_coef": 0.1}, {"kl_in": "reward"}, {"kl_importance": True}, {"kl_gate": "norm"})
    ),
    (
        {"kl_estimator": "k2"},
        "kl_coef: 0 makes kl_estimator k2 cost time for nothing; set more than 0, or kl_estimator",
    ),
    (
        {"kl_estimator": "k1", "kl_coef": 0.1},
        "kl_estimator: the gradient of k1 as a loss does not depend on the refere",
    ),
    (K3 | {"kl_in": "reward", "kl_importance": True}, f"kl_importance: {IN_REWARD}"),
    (K3 | {"kl_in": "reward", "kl_gate": "clipped"}, f"kl_gate: {IN_REWARD}"),
    *(
        (K3 | {"kl_gate": "clipped"} | one, "kl_gate: no effect where nothing is clipped; set none")
        for one in ({"ratio": "none"}, {"surrogate": "quadratic"}, {"clip_low": None, "clip_high": None})
    ),
]


@pytest.mark.parametrize(("knobs", "problem"), [*KNOBS, *CLIPS, *KLS], ids=str)
def test_a_choice_without_effect_is_a_problem(knobs: dict[str, Any], problem: str) -> None:
    (found,) = LossConfig(**knobs).problems()
    assert ": ".join(found).startswith(problem)
    assert "; " in found[1]  # says what to do


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"aggregate": "seq_mean_token_sum_norm", "horizon": 9},
        {"surrogate": "quadratic", "quadratic_coef": 2.0, "clip_low": None},
        {"surrogate": "gvpo", "gvpo_coef": 2.0, "ratio": "token"},
        {"surrogate": "cispo", "clip_low": None, "clip_high": 4.0},
        {"ratio": "none", "clip_low": None, "clip_high": None},
        {"ratio": "sequence", "dual_clip": 3.0},
        {"kl_estimator": "k1", "kl_coef": 0.1, "kl_in": "reward"},
        {"kl_estimator": "none", "kl_coef": 0.0, "kl_in": "loss", "kl_importance": False, "kl_gate": "none"},
        K3 | {"kl_importance": True, "kl_gate": "norm"},
        K3 | {"kl_gate": "clipped", "dual_clip": 3.0, "clip_low": None, "clip_high": None},
    ],
    ids=str,
)
def test_choices_with_effect_are_none(knobs: dict[str, Any]) -> None:
    assert LossConfig(**knobs).problems() == []


def test_all_problems_are_found_at_once() -> None:
    knobs: dict[str, Any] = {"ratio": "none", "clip_low": 0.1, "dual_clip": 3.0, "kl_coef": 0.1, "horizon": 9}
    assert [knob for knob, _ in LossConfig(**knobs).problems()] == ["clip_low", "dual_clip", "kl_coef", "horizon"]


def test_what_an_algorithm_chose_by_default_is_no_problem() -> None:
    class Chosen(LossConfig):
        gvpo_coef: float = 0.3
        kl_coef: float = 0.2
        kl_importance: bool = True

    assert Chosen().problems() == []
    assert Chosen(kl_estimator="k3", kl_in="reward").problems() == []


@pytest.mark.parametrize(
    "knobs", [{"clip_low": -0.1}, {"kl_coef": float("nan")}, {"clip_high": float("inf")}, {"dual_clip": 0}, {"x": 1}]
)
def test_values_out_of_range_and_unknown_knobs_are_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LossConfig(**knobs)


@pytest.mark.parametrize(
    ("knobs", "coupled"),
    [
        ({"ratio": "token"}, False),
        ({"ratio": "none"}, False),
        ({"ratio": "sequence"}, True),
        ({"ratio": "geometric"}, True),
        ({"ratio": "product"}, True),
        ({"surrogate": "gvpo"}, True),
        (K3 | {"kl_gate": "clipped"}, False),
        (K3 | {"kl_gate": "norm"}, True),
    ],
)
def test_a_loss_that_couples_tokens_says_so(knobs: dict[str, Any], coupled: bool) -> None:
    assert LossConfig(**knobs).is_coupled == coupled
