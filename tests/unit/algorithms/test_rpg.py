import math

import pytest

from agentrl.algorithms.rpg import RPG, RPGConfig
from tests.unit.algorithms.steps import outcomes, step

HALF = 2**-0.5  # the z-score of two, with divisor 1


def test_clipped_weights_on_log_pi_and_a_kl_that_carries_the_ratio() -> None:
    algorithm = RPG(RPGConfig(std_eps=1e-12, kl_coef=0.5))
    ratios, to_reference = [[1.5, 0.5], [0.9]], [[2.0, 1.0], [0.7]]
    found = step(algorithm, outcomes([1.0, 0.0], tokens=[2, 1]), ratios, ref_ratios=to_reference)
    policy = [[1.28 * HALF, 0.8 * HALF], [-0.9 * HALF]]
    kl = [[1.5 * math.log(2), 0.0], [0.9 * math.log(0.7)]]
    expected = [[-(a - 0.5 * b) / 3 for a, b in zip(*both, strict=True)] for both in zip(policy, kl, strict=True)]
    assert found.gradient == [pytest.approx(row) for row in expected]


def test_it_needs_the_reference_for_its_kl() -> None:
    assert RPG(RPGConfig()).requires == {"groups", "reference"}
    assert RPG(RPGConfig(kl_estimator="none")).requires == {"groups"}
