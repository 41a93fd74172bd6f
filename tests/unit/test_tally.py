import json
import math
from dataclasses import replace

import pytest

from agentrl.errors import EnvError
from agentrl.tally import Outcome, Tally, wilson_interval, with_reported
from agentrl.trajectory import Ending, Trajectory
from tests.episodes import episode


def flagged(trajectory: Trajectory, *flags: str) -> Trajectory:
    turns = (
        replace(turn, info={flag: True}) if flag else turn for turn, flag in zip(trajectory.turns, flags, strict=True)
    )
    return replace(trajectory, turns=tuple(turns))


PLAYED = [
    episode(0, [1, 2], episode_return=1.0),
    episode(1, [3], ending=Ending.MAX_TURNS),
    episode(2, [1, 1, 1], episode_return=1.0, whole=False),
    episode(3, [], ending=Ending.ENV_ERROR),
]


def test_wilsons_interval_is_the_textbooks() -> None:
    # 8 of 10, z = 1.959964: center (0.8 + 0.192073) / 1.384146, half 1.959964 sqrt(0.016 + 0.0096036) / 1.384146
    assert wilson_interval(8, 10) == pytest.approx((0.490162, 0.943318), abs=1e-6)


@pytest.mark.parametrize("num", [1, 10, 134])
def test_wilsons_interval_of_all_or_none_ends_at_the_border(num: int) -> None:
    z2 = 1.959963984540054**2
    assert wilson_interval(0, num) == (0.0, pytest.approx(z2 / (num + z2)))
    assert wilson_interval(num, num) == (pytest.approx(num / (num + z2)), 1.0)


def test_nothing_played_says_nothing() -> None:
    assert wilson_interval(0, 0) == (0, 1)
    assert Tally([]).success_rate == 0
    assert not any(Tally([]).metrics().values())


def test_broken_episodes_count_as_played_and_not_as_won() -> None:
    tally = Tally(PLAYED)
    assert (tally.num_episodes, tally.successes, tally.success_rate) == (4, 2, 0.5)
    assert tally.endings == {"terminated": 2, "max_turns": 1, "context_full": 0, "env_error": 1, "timeout": 0}


def test_means_are_over_episodes() -> None:
    tally = Tally(PLAYED)
    assert (tally.mean_return, tally.mean_turns, tally.mean_action_tokens) == (2 / 4, 6 / 4, 9 / 4)


def test_flags_are_shares_of_turns() -> None:
    tally = Tally([flagged(PLAYED[0], "format_invalid", ""), flagged(PLAYED[2], "inadmissible", "inadmissible", "")])
    assert math.isclose(tally.format_invalid_frac, 1 / 5)
    assert math.isclose(tally.inadmissible_frac, 2 / 5)


def reporting(trajectory: Trajectory, *reports: dict[str, bool | float]) -> Trajectory:
    turns = (replace(turn, reports=told) for turn, told in zip(trajectory.turns, reports, strict=True))
    return replace(trajectory, turns=tuple(turns))


def test_reported_flags_are_shares_of_turns_and_reported_numbers_are_sums_of_an_episode() -> None:
    called = reporting(PLAYED[2], {"calls": 2.0, "late": True}, {"calls": 1.0, "late": False}, {})
    played = [called, reporting(PLAYED[1], {"late": True}), PLAYED[3]]
    tally = Tally(played)
    assert tally.reported == pytest.approx({"calls": 3 / 3, "late_frac": 2 / 4})
    assert tally.metrics()["rollout/late_frac"] == 2 / 4
    again = Tally([Trajectory.from_dict(json.loads(json.dumps(one.to_dict()))) for one in played])
    assert again.reported == tally.reported


def test_a_report_under_a_name_of_ours_is_refused() -> None:
    with pytest.raises(EnvError, match="rollout/turns are metrics of ours; rename them"):
        Tally([reporting(PLAYED[1], {"turns": 1.0})]).metrics()


def test_tokens_that_a_player_tells_count_beside_the_ids_that_it_keeps() -> None:
    """Of several calls in a turn, thoughts and then an action, the turn holds the last one's ids."""
    turns = [replace(turn, info={"prompt_tokens": 50, "action_tokens": 9}) for turn in PLAYED[0].turns]
    (outcome,) = Tally([replace(PLAYED[0], turns=tuple(turns))]).outcomes
    assert (outcome.prompt_tokens, outcome.action_tokens) == (2 * 50, 2 * 9)


def test_tokens_of_several_trials_all_count() -> None:
    last = replace(episode(0, [2, 3]), info={"usage": {"action_tokens": 90, "prompt_tokens": 400, "cached_tokens": 7}})
    outcome = Outcome.of(last)
    assert (outcome.action_tokens, outcome.prompt_tokens, outcome.cached_tokens) == (90, 400, 7)


def test_the_type_of_a_task_is_kept_apart_from_what_else_is_known() -> None:
    (outcome,) = Tally([replace(PLAYED[3], info={"task": "heat it", "task_type": "heat", "error": "gone"})]).outcomes
    assert (outcome.task_type, outcome.info) == ("heat", {"error": "gone"})


def test_metrics_have_the_names_that_reports_read() -> None:
    metrics = Tally(PLAYED).metrics()
    assert metrics["rollout/success_rate"] == 0.5
    assert metrics["rollout/env_error_frac"] == metrics["rollout/ending_env_error_frac"] == 0.25
    assert metrics["rollout/ending_max_turns_frac"] == 0.25


def test_a_report_under_a_name_of_ours_is_refused_in_evaluations_too() -> None:
    assert with_reported({"eval_in/turns": 3.0}, {"score": 0.5}, "eval_in") == {
        "eval_in/turns": 3.0,
        "eval_in/score": 0.5,
    }
    with pytest.raises(EnvError, match="eval_in/turns are metrics of ours"):
        with_reported({"eval_in/turns": 3.0}, {"turns": 0.5}, "eval_in")
