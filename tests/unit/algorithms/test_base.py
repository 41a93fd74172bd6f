from dataclasses import replace
from typing import Any

import pytest
import torch

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.dr_grpo import DrGRPO, DrGRPOConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.gvpo import GVPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.loss import Correction
from tests.episodes import episode
from tests.unit.algorithms.steps import by_episode, by_token, filled, outcomes, step

NO_KL: dict[str, Any] = {"kl_estimator": "none"}


def off_reference(batch: Batch, k1: list[list[float]]) -> Batch:
    """Gives the batch with these differences log pi_old - log pi_ref."""
    old = filled(batch, [[-1.0] * len(row) for row in k1])
    return replace(batch, old_logprobs=old, ref_logprobs=old - filled(batch, k1))


def test_another_algorithms_credit_can_take_the_place_of_its_own() -> None:
    batch = outcomes([1.0, 0.0, 0.5], tokens=[1, 2, 1])
    algorithm = GRPO(GRPOConfig(credit="rloo", **NO_KL))
    assert by_episode(algorithm.credit(batch), batch) == pytest.approx([0.75, -0.75, 0])
    found = step(algorithm, batch, [[1.5], [1.0, 1.0], [1.0]])  # the loss is still GRPO's
    assert found.gradient == [[0], pytest.approx([0.75 / 6] * 2), [0]]


def test_what_another_credit_needs_is_needed() -> None:
    assert GRPO(GRPOConfig(credit="ppo", **NO_KL)).requires == {"values"}
    assert GRPO(GRPOConfig(credit="remax", **NO_KL)).requires == {"greedy"}
    assert GRPO(GRPOConfig(credit="zcpo", **NO_KL)).requires == {"groups", "reference_kl"}
    assert CRF(CRFConfig(credit="spo")).requires == {"updated_logprobs"}


def test_another_credits_critic_is_the_one_that_is_trained() -> None:
    batch = outcomes([1.0], tokens=[2])
    batch = replace(batch, values=filled(batch, [[0.5, 0.25]]))
    algorithm = GRPO(GRPOConfig(credit="ppo", **NO_KL))
    assert algorithm.credit_source.critic.value_clip is not None
    last = 1 - 0.25
    first = (0.25 - 0.5) + 0.95 * last
    assert by_token(algorithm.value_targets(batch), batch) == [pytest.approx([first + 0.5, last + 0.25])]


@pytest.mark.parametrize("beta_minus", [0.0, 0.5, 2.0])
def test_negative_advantages_are_scaled_and_denominators_stay(beta_minus: float) -> None:
    batch = outcomes([1.0, 0.0], tokens=[1, 2])
    found = step(CRF(CRFConfig(beta_minus=beta_minus)), batch)
    assert found.gradient == [[pytest.approx(-1 / 2)], pytest.approx([beta_minus / 4] * 2)]


def test_a_kl_in_the_reward_lowers_the_return_that_groups_are_compared_by() -> None:
    batch = off_reference(outcomes([1.0, 1.0], tokens=[2, 1]), [[0.5, 0.25], [-0.25]])
    algorithm = DrGRPO(DrGRPOConfig(kl_estimator="k1", kl_coef=0.2, kl_in="reward"))
    assert by_episode(algorithm.credit(batch), batch) == pytest.approx([-0.1, 0.1])
    assert not algorithm.advantages(batch).any()  # before the KL both returns are the same


def test_a_kl_in_the_reward_is_that_of_the_whole_trajectory_however_many_rows_it_has() -> None:
    batch = make_batch([episode(0, [1, 1], episode_return=1.0, whole=False), episode(1, [1], episode_return=1.0)])
    batch = off_reference(batch, [[0.5], [0.25], [-0.25]])
    algorithm = DrGRPO(DrGRPOConfig(kl_estimator="k1", kl_coef=0.2, kl_in="reward"))
    assert by_episode(algorithm.credit(batch), batch) == pytest.approx([-0.1, 0.1])


def test_the_token_filter_can_be_by_entropy() -> None:
    batch = outcomes([1.0, 0.0], tokens=[3, 2])
    batch = replace(batch, old_entropy=filled(batch, [[0.1, 0.5, 0.2], [0.4, 0.3]]))
    algorithm = CRF(CRFConfig(token_filter="entropy", entropy_frac=0.4))
    assert "entropy" in algorithm.requires
    found = step(algorithm, batch)
    assert found.gradient == [pytest.approx([0, -1 / 6, 0]), pytest.approx([1 / 4, 0])]
    one_in_five = CRF(CRFConfig(token_filter="entropy"))
    assert int(one_in_five.keep(batch, one_in_five.credit(batch), batch.rollout_logprobs).sum()) == 1


def test_any_algorithm_can_filter_its_negative_tokens() -> None:
    batch = outcomes([1.0, 0.0], tokens=[2, 4])
    algorithm = GRPO(GRPOConfig(token_filter="ntf", tau=0.5, std_eps=1e-12, **NO_KL))
    found = step(algorithm, batch, [[1.0, 1.0], [1.1, 0.9, 1.2, 1.0]])
    half = 2**-0.5
    assert found.gradient == [pytest.approx([-half / 4] * 2), pytest.approx([0, 0.9 * half / 8, 0, half / 8])]


def test_trajectories_that_a_token_limit_cut_off_can_be_left_out_but_still_count() -> None:
    cut = episode(1, [2])
    cut = replace(cut, turns=(replace(cut.turns[0], stopped="length"),))
    batch = make_batch([episode(0, [2], episode_return=1.0), cut, episode(2, [1])])
    found = step(DrGRPO(DrGRPOConfig(horizon=1, drop_truncated=True)), batch)
    third = 1 / 3
    assert found.gradient == [pytest.approx([-2 * third * third] * 2), [0, 0], [pytest.approx(third * third)]]
    assert all(step(DrGRPO(DrGRPOConfig(horizon=1)), batch).gradient[1])


def test_an_algorithm_that_remembers_nothing_has_nothing_to_restore() -> None:
    algorithm = CRF(CRFConfig())
    algorithm.restore(algorithm.state())
    with pytest.raises(AssertionError, match="c_rf remembers nothing"):
        algorithm.restore({"1": [0, 0]})


def test_advantages_and_targets_are_for_the_algorithm_to_define() -> None:
    batch = outcomes([1.0])
    nameless = Algorithm(CRFConfig())
    for undefined in (nameless.advantages, nameless.targets):
        with pytest.raises(NotImplementedError):
            undefined(batch)
    assert torch.equal(nameless.keep(batch, torch.zeros_like(batch.rewards), batch.rewards), batch.action_mask)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (CRFConfig(tau=0.5), ("tau", "no effect on token_filter none; leave it out, or set ntf")),
        (CRFConfig(entropy_frac=0.5), ("entropy_frac", "no effect on token_filter none; leave it out, or set entropy")),
        (
            CRFConfig(token_filter="entropy", tau=0.5),
            ("tau", "no effect on token_filter entropy; leave it out, or set ntf"),
        ),
        (
            CRFConfig(token_filter="ntf", beta_minus=0),
            ("token_filter", "ntf has no negative advantages to filter with beta_minus 0; set one of them"),
        ),
        (
            GVPOConfig(token_filter="ntf"),
            ("token_filter", "not defined for surrogate gvpo, which weighs whole trajectories; leave it out"),
        ),
        (
            GVPOConfig(correction=Correction(level="token")),
            ("correction", "not defined for surrogate gvpo, which is not linear; leave it out"),
        ),
        (
            CRFConfig(surrogate="quadratic", correction=Correction(veto=0.1)),
            ("correction", "not defined for surrogate quadratic, which is not linear; leave it out"),
        ),
        (CRFConfig(credit="c_rf"), ("credit", "c_rf is what c_rf uses anyway; leave it out")),
        (CRFConfig(credit="gropo"), ("credit", "no algorithm named 'gropo'. Did you mean 'grpo'?")),
        (
            CRFConfig(correction=Correction(high=3.0)),
            ("correction.high", "no effect at level none; set level token, or leave it out"),
        ),
        (
            CRFConfig(horizon=3),
            ("horizon", "no effect on aggregate class_balanced; set seq_mean_token_sum_norm, or null"),
        ),
    ],
)
def test_a_choice_without_effect_is_a_problem(config: CRFConfig | GVPOConfig, expected: tuple[str, str]) -> None:
    assert config.problems() == [expected]


def test_a_knob_of_a_credit_that_is_not_used_has_no_effect() -> None:
    ((knob, problem),) = GRPOConfig(credit="rloo", std_eps=0.1, **NO_KL).problems()
    assert (knob, problem) == ("std_eps", "no effect with credit rloo, which has its own; leave it out")
    assert GRPOConfig(credit="rloo", clip_high=0.3, **NO_KL).problems() == []


def test_an_algorithm_with_problems_is_not_made_and_names_them_all() -> None:
    with pytest.raises(ValueError, match=r"horizon: no effect .*; tau: no effect .*; credit: no algorithm named 'x'"):
        CRF(CRFConfig(horizon=3, tau=0.5, credit="x"))
