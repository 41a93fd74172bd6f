import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentrl.algorithms.zcpo import ZCPO, ZCPOConfig
from agentrl.batch import Batch
from tests.unit.algorithms.steps import by_episode, filled, outcomes, step

KAPPA = [[0.1, 0.3], [0.6], [0.2, 0.2, 0.5]]  # means 0.2, 0.6, 0.3; sums 0.4, 0.6, 0.9
RETURNS = [1.0, 0.0, 0.2]  # mean 0.4: A = 0.6, -0.4, -0.2


def drifted(returns: Sequence[float] = RETURNS) -> Batch:
    """Gives a group of three with these exact KLs, and k1 twice as large, of each token."""
    batch = outcomes(returns, tokens=[len(row) for row in KAPPA])
    old, kappa = filled(batch, [[-1.0] * len(row) for row in KAPPA]), filled(batch, KAPPA)
    return replace(batch, old_logprobs=old, ref_logprobs=old - 2 * kappa, ref_kl=kappa)


def coefficients(batch: Batch, **knobs: Any) -> list[float]:
    return by_episode(ZCPO(ZCPOConfig(**knobs)).advantages(batch), batch)


def centered(values: Sequence[float]) -> list[float]:
    return [value - sum(values) / len(values) for value in values]


def minus(reward: Sequence[float], drift: Sequence[float], *, coef: float = 4.0) -> Any:
    return pytest.approx([a - coef * k for a, k in zip(reward, drift, strict=True)])


SCALED = [a / 0.6 for a in centered(RETURNS)]
MEANS, SUMS = [0.2, 0.6, 0.3], [0.4, 0.6, 0.9]


def test_the_relative_drift_is_taken_off_the_scaled_advantage() -> None:
    assert coefficients(drifted()) == minus(SCALED, centered(MEANS))
    assert coefficients(drifted(), drift_coef=0.5) == minus(SCALED, centered(MEANS), coef=0.5)
    assert sum(coefficients(drifted())) == pytest.approx(0, abs=1e-12)


def test_without_centering_every_drift_costs() -> None:
    assert coefficients(drifted(), center_drift=False) == minus(SCALED, MEANS)


def test_without_the_length_norm_long_answers_cost_more() -> None:
    assert coefficients(drifted(), normalize_length=False) == minus(SCALED, centered(SUMS))


def test_k1_estimates_the_drift_from_the_sampled_tokens() -> None:
    assert coefficients(drifted(), drift="k1") == minus(SCALED, centered([2 * mean for mean in MEANS]))


def test_the_deviation_can_take_the_largest_advantages_place() -> None:
    std = ((0.6**2 + 0.4**2 + 0.2**2) / 2) ** 0.5
    expected = minus([a / (std + 1e-6) for a in centered(RETURNS)], centered(MEANS))
    assert coefficients(drifted(), scale="std") == expected


def test_a_group_with_one_return_for_all_is_skipped_unless_the_gate_is_off() -> None:
    equal = drifted([0.1] * 3)
    assert coefficients(equal) == [0, 0, 0]
    assert coefficients(equal, gate=False) == minus([0, 0, 0], centered(MEANS))


def test_a_group_of_one_is_skipped() -> None:
    batch = outcomes([1.0], tokens=[2])
    batch = replace(batch, ref_kl=filled(batch, [[0.1, 0.2]]))
    assert coefficients(batch) == [0]


def test_the_worked_example_restores_the_weak_rewards_direction() -> None:
    tau = 1e-3
    batch = outcomes([*[1.0, -1.0] * 7, tau, -tau])
    kl = 0.4 * math.log(0.4 / 0.2) + 15 * 0.6 / 15 * math.log((0.6 / 15) / (0.8 / 15))
    assert kl == pytest.approx(0.10465, abs=1e-5)
    found = coefficients(replace(batch, ref_kl=filled(batch, [[kl]] * 16)))
    assert found == pytest.approx([*[1.0, -1.0] * 7, tau, -tau])


def test_its_coefficient_takes_the_advantages_place_in_dapos_surrogate() -> None:
    batch = outcomes([1.0, 0.0], tokens=[2, 1])
    batch = replace(batch, ref_kl=filled(batch, [[0.0, 0.1], [0.15]]))
    good = 1 - 4 * (0.05 - 0.1)
    found = step(ZCPO(ZCPOConfig()), batch, [[1.25, 1.29], [0.79]])
    assert found.gradient == [pytest.approx([-1.25 * good / 3, 0]), [0]]
    assert found.loss == pytest.approx(-good * (1.25 + 1.28 - 0.8) / 3)


def test_the_controls_of_the_paper_are_gates_of_a_kl_loss() -> None:
    batch = outcomes([1.0, 0.0])
    batch = replace(batch, ref_kl=filled(batch, [[0.0], [0.0]]))
    loss = {"kl_estimator": "k3", "kl_coef": 0.04}
    slope = -0.04 * 0.5 * (1 - 1 / 0.5)  # of the second; x = ln 0.5 of both, and the first is clipped
    ratios, to_reference = [[1.5], [1.0]], [[0.5], [0.5]]
    for gate, (first, second) in {"none": (1, 1), "clipped": (0, 1), "norm": (2**-0.5, 2**-0.5)}.items():
        algorithm = ZCPO(ZCPOConfig.model_validate({**loss, "kl_gate": gate}))
        found = step(algorithm, batch, ratios, ref_ratios=to_reference)
        assert found.gradient == [[pytest.approx(-first * slope)], [pytest.approx(1 / 2 - second * slope)]]


def test_it_needs_the_exact_kl_or_for_the_estimate_the_references_log_probabilities() -> None:
    assert ZCPO(ZCPOConfig()).requires == {"groups", "reference_kl"}
    assert ZCPO(ZCPOConfig(drift="k1")).requires == {"groups", "reference"}


def test_without_weight_on_the_drift_no_reference_is_needed() -> None:
    algorithm = ZCPO(ZCPOConfig(drift_coef=0.0))
    assert algorithm.requires == {"groups"}
    batch = outcomes([1.0, 0.0, 0.0, 0.0])
    assert by_episode(algorithm.credit(batch), batch) == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])
