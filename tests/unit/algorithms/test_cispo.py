import math

import pytest

from agentrl.algorithms.cispo import CISPO, CISPOConfig
from tests.unit.algorithms.steps import OLD, outcomes, step

HALF = 2**-0.5  # the z-score of two, with divisor 1


def test_the_weight_of_a_token_is_bounded_above_only_and_none_loses_its_gradient() -> None:
    ratios = [[9.0, 0.01], [2.0]]
    found = step(CISPO(CISPOConfig(std_eps=1e-12)), outcomes([1.0, 0.0], tokens=[2, 1]), ratios)
    assert found.gradient == [pytest.approx([-5 * HALF / 3, -0.01 * HALF / 3]), [pytest.approx(2 * HALF / 3)]]
    objective = HALF * (5 * (OLD + math.log(9)) + 0.01 * (OLD + math.log(0.01)) - 2 * (OLD + math.log(2)))
    assert found.loss == pytest.approx(-objective / 3)
