import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from agentrl import assembly
from agentrl.algorithms.reinforce_pp import ReinforcePP, ReinforcePPConfig
from agentrl.batch import make_batch
from agentrl.config import load_config
from agentrl.errors import AgentRLError
from agentrl.rewards._base import RawReward, Source
from agentrl.rewards.env import env_rewards
from agentrl.rewards.scorer import Scorer, reward_metrics
from agentrl.trajectory import Ending, Trajectory
from tests.episodes import episode


def paying(*rewards: Sequence[float]) -> Source:
    """A source that gives these rewards to the last turns of each episode."""

    def source(trajectories: Sequence[Trajectory]) -> list[dict[int, RawReward]]:
        firsts = [len(one.turns) - len(given) for one, given in zip(trajectories, rewards, strict=True)]
        return [
            {first + n: RawReward(value) for n, value in enumerate(given)}
            for first, given in zip(firsts, rewards, strict=True)
        ]

    return source


def paid(trajectories: Sequence[Trajectory]) -> list[list[float]]:
    return [[turn.reward for turn in one.turns] for one in trajectories]


def by_id(ids: Tensor, values: Tensor) -> dict[int, float]:
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


PLAYED = [episode(0, [2, 3], episode_return=1.0), episode(1, [1, 1, 2])]


def test_an_outcome_replaces_what_the_environment_paid_and_is_paid_on_the_last_turn() -> None:
    assert paid(Scorer(paying([0.5], [-2.0]))(PLAYED)) == [[0.0, 0.5], [0.0, 0.0, -2.0]]


def test_a_process_reward_is_paid_on_each_turn() -> None:
    assert paid(Scorer(paying([0.5, 1.0], [1.0, 2.0, 3.0]))(PLAYED)) == [[0.5, 1.0], [1.0, 2.0, 3.0]]


def test_what_is_added_to_the_environments_reward_is_scaled_and_clipped_and_that_is_not() -> None:
    scorer = Scorer(paying([4.0], [-0.5]), scale=2.0, clip=1.5, add=True)
    assert paid(scorer(PLAYED)) == [[0.0, 1.0 + 1.5], [0.0, 0.0, -1.0]]


def test_the_environments_own_reward_is_scaled_before_it_is_clipped() -> None:
    played = [episode(0, [1], episode_return=0.25), episode(1, [1], episode_return=-1.0)]
    assert paid(Scorer(env_rewards, scale=2.0, clip=0.75)(played)) == [[0.5], [-0.75]]


@pytest.mark.parametrize("flag", ["format_invalid", "inadmissible"])
def test_an_invalid_action_costs_its_turn_the_penalty_after_the_clip(flag: str) -> None:
    first, last = episode(0, [1, 1], episode_return=4.0).turns
    played = replace(PLAYED[0], turns=(replace(first, info={flag: True}), replace(last, info={flag: False})))
    assert paid(Scorer(env_rewards, clip=2.0, invalid_penalty=0.25)([played])) == [[-0.25, 2.0]]
    assert paid(Scorer(paying([1.0]), invalid_penalty=0.25)([played])) == [[-0.25, 1.0]]


def test_a_penalty_alone_leaves_the_environments_rewards_and_the_success(tmp_path) -> None:
    text = "env: {id: agentrl/Guess-v0}\nmodel: {path: tiny}\nalgorithm: {name: c_rf}\nreward: {invalid_penalty: 0.5}\n"
    (tmp_path / "x.yaml").write_text(text)
    config = load_config(str(tmp_path / "x.yaml")).config
    won, lost = episode(0, [1], episode_return=1.0), episode(1, [1])
    lost = replace(lost, turns=(replace(lost.turns[0], info={"inadmissible": True}),))
    scored = assembly.scorer(config, device=torch.device("cpu"))([won, lost])
    assert paid(scored) == [[1.0], [-0.5]]
    assert [one.success for one in scored] == [True, False]


def test_success_stays_what_the_environment_said() -> None:
    silent = Scorer(paying([-1.0], [1.0]))(PLAYED)
    assert [one.success for one in silent] == [True, False]  # by its return, where it says nothing
    turns = PLAYED[1].turns
    said = replace(PLAYED[1], turns=(replace(turns[0], info={"success": True}), *turns[1:]))
    (kept,) = Scorer(paying([-1.0]))([said])
    assert kept.success


def test_all_but_rewards_and_notes_stays_as_it_was() -> None:
    for before, after in zip(PLAYED, Scorer(paying([3.0], [4.0]))(PLAYED), strict=True):
        undone = [
            replace(turn, reward=old.reward, info=old.info) for turn, old in zip(after.turns, before.turns, strict=True)
        ]
        assert replace(after, turns=tuple(undone)) == before


def test_broken_episodes_and_those_without_a_turn_are_not_judged() -> None:
    broken = episode(2, [1], episode_return=5.0, ending=Ending.ENV_ERROR)
    unbegun = episode(3, [], ending=Ending.CONTEXT_FULL)
    scored = Scorer(paying([0.5], [-2.0]))([broken, PLAYED[0], unbegun, PLAYED[1]])
    assert (scored[0], scored[2]) == (broken, unbegun)
    assert paid(scored) == [[5.0], [0.0, 0.5], [], [0.0, 0.0, -2.0]]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused_with_its_place_even_where_it_would_be_clipped(value: float) -> None:
    with pytest.raises(AgentRLError, match=rf"reward: {value} for turn 2 of task 'task 0' is no reward; mend"):
        Scorer(paying([0.5], [1.0, value]), clip=1.0)(PLAYED)


def test_metrics_tell_what_was_given_and_what_became_of_it() -> None:
    scored = Scorer(paying([4.0], [-0.5, 3.0]), scale=0.5, clip=1.0)([*PLAYED, episode(2, [1], ending=Ending.TIMEOUT)])
    assert reward_metrics(scored) == {
        "rollout/raw_return": (4.0 - 0.5 + 3.0) / 2,
        "rollout/env_return": (1.0 + 0.0) / 2,
        "rollout/reward_clipped_frac": 2 / 3,
        "rollout/reward_truncated_frac": 0.0,
    }


def test_where_nobody_scores_there_is_nothing_to_tell() -> None:
    assert reward_metrics(PLAYED) == {}
    assert reward_metrics(Scorer(paying())([episode(0, [1], ending=Ending.TIMEOUT)])) == {}


@pytest.mark.parametrize("whole", [True, False])
def test_process_rewards_reach_their_tokens_and_those_before_normalized_over_the_batch(whole: bool) -> None:
    played = [episode(0, [2, 1, 3], episode_return=9.0, whole=whole), episode(1, [1, 2], whole=whole)]
    batch = make_batch(Scorer(paying([0.5, -1.0, 2.0], [1.0, -0.25]))(played))
    is_paid = batch.rewards != 0
    assert by_id(batch.input_ids[is_paid], batch.rewards[is_paid]) == {
        101: 0.5,
        102: -1.0,
        105: 2.0,
        200: 1.0,
        202: -0.25,
    }  # the last token of each turn
    to_go = {100: 1.5, 101: 1.5, 102: 1.0, 103: 2.0, 104: 2.0, 105: 2.0, 200: 0.75, 201: -0.25, 202: -0.25}
    mean = sum(to_go.values()) / 9
    std = math.sqrt(sum((value - mean) ** 2 for value in to_go.values()) / 9)
    credit = ReinforcePP(ReinforcePPConfig(kl_estimator="none")).credit(batch)
    found = by_id(batch.input_ids[batch.action_mask], credit[batch.action_mask])
    assert found == pytest.approx({token: (value - mean) / std for token, value in to_go.items()})
    assert not credit[~batch.action_mask].any()
