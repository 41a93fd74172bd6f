import pytest

from agentrl.algorithms.gopo import GOPO, GOPOConfig
from tests.unit.algorithms.steps import outcomes, step

HALF = 2**-0.5  # the z-score of two, with divisor 1


def test_a_quadratic_penalty_pulls_each_tokens_ratio_back() -> None:
    ratios = [[1.5, 1.0], [3.0]]
    found = step(GOPO(GOPOConfig(std_eps=1e-12, quadratic_coef=2.0)), outcomes([1.0, 0.0], tokens=[2, 1]), ratios)
    first, second = [1.5 * (HALF - 2 * 0.5), HALF], 3 * (-HALF - 2 * 2)
    assert found.gradient == [pytest.approx([-x / 2 / 2 for x in first]), [pytest.approx(-second / 2)]]
    objectives = (1.5 * HALF - 0.5**2 + HALF) / 2, -3 * HALF - 2**2
    assert found.loss == pytest.approx(-sum(objectives) / 2)


def test_the_penalty_can_be_on_the_whole_trajectorys_ratio() -> None:
    algorithm = GOPO(GOPOConfig(std_eps=1e-12, ratio="sequence"))
    found = step(algorithm, outcomes([1.0, 0.0], tokens=[2, 1]), [[4.0, 1.0], [1.0]])
    assert found.loss == pytest.approx(-(2 * HALF - 1 / 2 - HALF) / 2)
    assert found.gradient[0] == pytest.approx([-2 * (HALF - 1) / 2 / 2] * 2)
