import math
from dataclasses import replace

import pytest
import torch

from agentrl.algorithms.flash_reinforce import FlashCorrection, FlashReinforce, FlashReinforceConfig
from agentrl.training.plan import plan
from tests.unit.algorithms.steps import OLD, by_episode, by_token, filled, outcomes, step

NEAR, FAR = 1.02, 2.0
"""Ratios pi_old / pi_rollout of tokens of probability 0.4 under the engine: binary KL below and above the limit."""


def test_the_baseline_is_the_batchs_mean_whatever_the_groups_and_lengths_are() -> None:
    batch = outcomes([1.0, 0.0, 0.0, 1.0, 1.0], groups=[0, 0, 1, 1, 1], tokens=[1, 9, 2, 2, 1])
    found = by_episode(FlashReinforce(FlashReinforceConfig()).advantages(batch), batch)
    assert found == pytest.approx([0.4, -0.6, -0.6, 0.4, 0.4])


def test_tokens_weigh_by_the_engines_mismatch_and_a_far_trajectory_is_dropped() -> None:
    algorithm = FlashReinforce(FlashReinforceConfig())
    batch = outcomes([1.0, 0.0, 1.0, 0.0], tokens=[2, 1, 2, 1])
    ratios = [[NEAR, 1 / NEAR], [1.0], [1.0, FAR], [1.0]]
    rollout = filled(batch, [[math.log(0.4)] * len(row) for row in ratios])
    batch = replace(batch, rollout_logprobs=rollout, old_logprobs=rollout + filled(batch, ratios).log())
    planned = plan(algorithm, batch, algorithm.credit(batch), None)
    assert by_token(planned.advantages, batch) == [
        pytest.approx([0.5 * x for x in row]) if sign > 0 else pytest.approx([-0.5 * x for x in row])
        for row, sign in zip(ratios, [1, -1, 1, -1], strict=True)
    ]
    assert by_token(planned.keep, batch) == [[True, True], [True], [False, False], [True]]
    assert by_token(planned.weights, batch) == [  # a dropped trajectory keeps its place: 1 / (4 T)
        [1 / 8, 1 / 8],
        [1 / 4],
        [1 / 8, 1 / 8],
        [1 / 4],
    ]


def test_the_gradient_is_that_of_log_pi_without_ratio_or_whitening() -> None:
    algorithm = FlashReinforce(FlashReinforceConfig(correction=FlashCorrection(max_divergence=None)))
    batch = outcomes([1.0, 0.0, 0.0], tokens=[2, 1, 1])
    batch = replace(batch, rollout_logprobs=torch.full(batch.input_ids.shape, OLD))
    found = step(algorithm, batch, [[3.0, 1.0], [2.0], [0.5]])
    assert found.gradient == [pytest.approx([-1 / 9] * 2), [pytest.approx(1 / 9)], [pytest.approx(1 / 9)]]


def test_it_asks_for_the_engines_own_probabilities_and_makes_one_update() -> None:
    assert FlashReinforce(FlashReinforceConfig()).requires == {"correction", "one_update"}
