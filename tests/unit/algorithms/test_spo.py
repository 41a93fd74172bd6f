import json
import math
from dataclasses import replace

import pytest
import torch

from agentrl.algorithms.spo import SPO, SPOConfig
from agentrl.batch import Batch
from agentrl.errors import AgentRLError
from tests.unit.algorithms.steps import by_episode, filled, outcomes

HALF = 2**-0.5  # the z-score of two, with divisor 1
MOVED = -0.06 * math.log2(0.9)
"""Mean change of a log-probability at which 0.9 of the past is kept."""


def annotated(batch: Batch) -> Batch:
    return replace(batch, old_logprobs=filled(batch, [[-1.0] * int(num) for num in batch.action_mask.sum(1)]))


def learned(algorithm: SPO, batch: Batch, *, moved: float = MOVED) -> None:
    """Lets it learn from a batch whose log-probabilities all moved so far."""
    assert batch.old_logprobs is not None
    algorithm.learn(batch, batch.old_logprobs + moved)


def test_a_task_never_seen_counts_as_half_solved() -> None:
    batch = outcomes([1.0, 0.0, 1.0, 0.0], groups=[0, 1, 2, 3])
    std = (4 * 0.25 / 3) ** 0.5
    found = by_episode(SPO(SPOConfig()).advantages(batch), batch)
    assert found == pytest.approx([0.5 / std, -0.5 / std, 0.5 / std, -0.5 / std])


def test_what_is_remembered_of_a_task_is_its_baseline() -> None:
    algorithm, batch = SPO(SPOConfig()), annotated(outcomes([1.0, 0.0], groups=[0, 1], tokens=[2, 3]))
    learned(algorithm, batch)
    won, lost = 0.9 * 1 + 1, 0.9 * 1  # of Beta(1, 1), nine tenths are kept
    first, second = batch.task.tolist()
    assert algorithm.counts(first) == pytest.approx((won, lost))
    assert algorithm.counts(second) == pytest.approx((lost, won))
    later = outcomes([1.0, 1.0], groups=[0, 1])
    margins = [1 - won / (won + lost), 1 - lost / (won + lost)]
    mean, std = sum(margins) / 2, abs(margins[0] - margins[1]) * HALF
    found = by_episode(algorithm.advantages(later), later)
    assert found == pytest.approx([(margin - mean) / std for margin in margins])


@pytest.mark.parametrize(("moved", "kept"), [(0.0, 0.96), (1e-4, 0.96), (-MOVED, 0.9), (0.06, 0.875), (9.0, 0.875)])
def test_the_faster_the_policy_moves_the_more_is_forgotten_within_bounds(moved: float, kept: float) -> None:
    algorithm, batch = SPO(SPOConfig()), annotated(outcomes([1.0], tokens=[4]))
    learned(algorithm, batch, moved=moved)
    assert algorithm.counts(int(batch.task[0])) == pytest.approx((kept + 1, kept))


def test_episodes_of_one_task_are_all_counted_and_forget_once() -> None:
    algorithm, batch = SPO(SPOConfig()), annotated(outcomes([1.0, 0.25, 0.0], tokens=[1, 2, 3]))
    learned(algorithm, batch)
    assert algorithm.counts(int(batch.task[0])) == pytest.approx((0.9 + 1.25, 0.9 + 1.75))


def test_the_prior_can_be_told() -> None:
    algorithm = SPO(SPOConfig(prior_success=0.2, prior_count=5.0))
    assert algorithm.counts(7) == (1, 4)


def test_its_memory_survives_a_checkpoint_in_json() -> None:
    algorithm, batch = SPO(SPOConfig()), annotated(outcomes([1.0, 0.0], groups=[0, 1]))
    learned(algorithm, batch)
    restored = SPO(SPOConfig())
    restored.restore(json.loads(json.dumps(algorithm.state())))
    for task in batch.task.tolist():
        assert restored.counts(task) == algorithm.counts(task) != (1, 1)
    assert torch.equal(restored.advantages(batch), algorithm.advantages(batch))


@pytest.mark.parametrize(("returns", "worst"), [([0.5, 1.5], "1.5"), ([-1.0, 1.0], "-1"), ([math.nan, 1.0], "nan")])
def test_returns_that_are_no_rates_of_success_are_refused(returns: list[float], worst: str) -> None:
    with pytest.raises(AgentRLError, match=f"spo: a return of {worst}; .*must lie in 0 to 1"):
        SPO(SPOConfig()).advantages(outcomes(returns))


def test_it_learns_from_the_updated_policy() -> None:
    assert SPO(SPOConfig()).requires == {"updated_logprobs"}
