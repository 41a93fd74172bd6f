import pytest
import torch

from agentrl.algorithms.dapo import DAPO, DAPOConfig
from tests.unit.algorithms.steps import by_episode, outcomes, step

HALF = 2**-0.5  # the z-score of two, with divisor 1


def test_answers_near_the_token_limit_pay() -> None:
    algorithm = DAPO(DAPOConfig(overlong_limit=10, overlong_buffer=4))
    tokens = torch.tensor([1, 6, 7, 8, 10, 12]).double()
    assert algorithm.penalty(tokens).tolist() == [0, 0, -0.25, -0.5, -1, -1]
    assert not DAPO(DAPOConfig()).penalty(tokens).any()


def test_the_penalty_is_part_of_the_return_that_is_compared() -> None:
    batch = outcomes([1.0, 1.0, 0.0, 0.0], groups=[0, 0, 1, 1], tokens=[6, 8, 1, 2])
    algorithm = DAPO(DAPOConfig(overlong_limit=10, overlong_buffer=4, std_eps=1e-12))
    assert by_episode(algorithm.advantages(batch), batch) == pytest.approx([HALF, -HALF, 0, 0])
    assert not DAPO(DAPOConfig()).advantages(batch).any()


def test_the_upper_clip_is_the_wider_one_and_tokens_count_alike() -> None:
    ratios = [[1.25, 1.29, 1.0], [0.79]]
    found = step(DAPO(DAPOConfig(std_eps=1e-12)), outcomes([1.0, 0.0], tokens=[3, 1]), ratios)
    assert found.gradient == [pytest.approx([-1.25 * HALF / 4, 0, -HALF / 4]), [0]]
    assert found.loss == pytest.approx(-HALF * (1.25 + 1.28 + 1.0 - 0.8) / 4)


def test_dynamic_sampling_needs_groups_and_the_loss_no_reference() -> None:
    assert DAPOConfig().max_refills > 0
    assert DAPO(DAPOConfig()).requires == {"groups"}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (DAPOConfig(overlong_buffer=4), "no effect without overlong_limit; leave it out, or set the limit"),
        (DAPOConfig(overlong_limit=9, overlong_buffer=10), "10 is more than overlong_limit; set at most that"),
        (DAPOConfig(overlong_limit=9), "4096 is more than overlong_limit; set at most that"),
    ],
)
def test_a_buffer_that_cannot_be_is_a_problem(config: DAPOConfig, problem: str) -> None:
    assert config.problems() == [("overlong_buffer", problem)]


def test_a_buffer_within_its_limit_is_none() -> None:
    assert DAPOConfig(overlong_limit=9, overlong_buffer=9).problems() == []
