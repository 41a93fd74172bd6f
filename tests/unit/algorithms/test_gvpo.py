import math

import pytest

from agentrl.algorithms.gvpo import GVPO, GVPOConfig
from tests.unit.algorithms.steps import outcomes, step


def test_the_centered_log_ratios_of_a_group_are_regressed_on_its_centered_returns() -> None:
    batch = outcomes([1.0, 0.0, 0.5, 5.0], groups=[0, 0, 0, 1], tokens=[2, 1, 1, 1])
    ratios = [[2.0, 4.0], [1.0], [1.0], [3.0]]
    found = step(GVPO(GVPOConfig(gvpo_coef=0.3)), batch, ratios)
    implied = [0.3 * math.log(8), 0, 0]
    mean = sum(implied) / 3
    misses = [x - mean - a for x, a in zip(implied, [0.5, -0.5, 0], strict=True)]
    assert found.loss == pytest.approx(sum(miss**2 / 2 for miss in misses) / (3 - 1) / 2)  # two groups
    slopes = [0.3 * miss / (3 - 1) / 2 for miss in misses]
    assert found.gradient == [pytest.approx([slopes[0]] * 2), *([pytest.approx(x)] for x in slopes[1:]), [0]]


def test_at_the_optimum_of_the_regularized_reward_there_is_no_gradient() -> None:
    returns, coef = [1.0, 0.0, 0.25], 0.5
    ratios = [[math.exp(r / coef) / 7] for r in returns]  # pi = pi_old exp(R / coef) / Z, whatever Z is
    found = step(GVPO(GVPOConfig(gvpo_coef=coef)), outcomes(returns), ratios)
    assert found.loss == pytest.approx(0, abs=1e-24)
    assert [x for row in found.gradient for x in row] == pytest.approx([0] * 3, abs=1e-12)
