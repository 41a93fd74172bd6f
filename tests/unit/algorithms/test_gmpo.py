import math

import pytest

from agentrl.algorithms.gmpo import GMPO, GMPOConfig
from tests.unit.algorithms.steps import outcomes, step

HALF = 2**-0.5  # the z-score of two, with divisor 1


def test_the_geometric_mean_is_of_ratios_clipped_one_by_one() -> None:
    ratios = [[math.e, 1.0], [math.exp(-1.0), math.exp(0.6)]]
    found = step(GMPO(GMPOConfig(std_eps=1e-12)), outcomes([1.0, 0.0], tokens=[2, 2]), ratios)
    good, bad = math.exp((0.4 + 0) / 2), math.exp((-0.4 + 0.6) / 2)
    assert found.loss == pytest.approx(-HALF * (good - bad) / 2)
    assert found.gradient == [pytest.approx([0, -good * HALF / 2 / 2]), pytest.approx([0, bad * HALF / 2 / 2])]


def test_the_published_band_is_the_default() -> None:
    config = GMPOConfig()
    assert (config.clip_low, config.clip_high, config.kl_estimator) == (0.4, 0.4, "none")
