import math

import pytest

from agentrl.algorithms.gspo import GSPO, GSPOConfig
from tests.unit.algorithms.steps import outcomes, step

HALF = 2**-0.5  # the z-score of two, with divisor 1


def test_one_ratio_for_the_whole_trajectory_is_clipped_in_a_narrow_band() -> None:
    ratios = [[1.5, 1 / 1.5 * 1.0006], [0.9993]]  # geometric means 1.0003 and 0.9993
    found = step(GSPO(GSPOConfig(std_eps=1e-12)), outcomes([1.0, 0.0], tokens=[2, 1]), ratios)
    mean = math.sqrt(1.0006)
    assert mean < 1.0004
    assert found.gradient == [pytest.approx([-mean * HALF / 2 / 2] * 2), [0]]
    assert found.loss == pytest.approx(-HALF * (mean - 0.9997) / 2)


def test_a_trajectory_above_the_band_has_no_gradient() -> None:
    found = step(GSPO(GSPOConfig(std_eps=1e-12)), outcomes([1.0, 0.0], tokens=[2, 1]), [[1.001, 1.0], [1.001]])
    assert found.gradient == [[0, 0], [pytest.approx(1.001 * HALF / 2)]]


def test_it_is_planned_for_the_whole_step_from_the_current_policy() -> None:
    assert GSPO(GSPOConfig()).requires == {"groups", "current_logprobs"}
