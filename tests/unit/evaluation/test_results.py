import json

import pytest

from agentrl.evaluation.records import from_record
from agentrl.evaluation.results import result_of
from agentrl.tally import wilson_interval
from agentrl.trajectory import Ending
from tests.unit.evaluation.made import outcome, plan

THREE = [outcome("a", True), outcome("b", False), outcome("c", True)]
TWICE = [outcome("a", True), outcome("a", True), outcome("b", False), outcome("b", True), outcome("c", False)]
TWICE += [outcome("c", False)]


def test_of_one_sample_the_rate_has_wilsons_interval():
    result = result_of(plan("abc"), THREE, env_id="me/Env-v0")
    assert (result["num_tasks"], result["num_episodes"], result["successes"]) == (3, 3, 2)
    assert result["metrics"]["success_rate"] == {
        "value": 2 / 3,
        "ci95": list(wilson_interval(2, 3)),
        "method": "Wilson",
    }
    assert result["ci95"] == list(wilson_interval(2, 3))
    assert not [name for name in result["metrics"] if "@" in name]


def test_of_several_samples_the_tasks_are_the_units():
    result = result_of(plan("abc", samples=2), TWICE, env_id="me/Env-v0")
    assert (result["num_tasks"], result["num_episodes"], result["success_rate"]) == (3, 6, 0.5)
    metrics = result["metrics"]
    assert metrics["avg@2"] == metrics["success_rate"]
    assert metrics["success_rate"]["method"] == "bootstrap over tasks"
    # shares of the tasks: 1, 1/2 and 0; the least and the most of 27 resamples, a 27th each, are 0 and 1
    assert metrics["success_rate"]["ci95"] == [0, 1]
    assert metrics["pass@1"] == metrics["success_rate"]
    # whether a task was solved at all is one outcome a task
    assert metrics["pass@2"] == {"value": 2 / 3, "ci95": list(wilson_interval(2, 3)), "method": "Wilson"}


@pytest.mark.parametrize(("samples", "tries"), [(1, []), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12])])
def test_pass_at_k_is_told_for_powers_of_two_and_for_all_samples(samples, tries):
    played = [outcome(task, number == 0) for task in "ab" for number in range(samples)]
    metrics = result_of(plan("ab", samples=samples), played, env_id="x")["metrics"]
    assert [name for name in metrics if name.startswith("pass@")] == [f"pass@{k}" for k in tries]


def test_a_reported_score_has_an_interval_and_is_what_tokens_are_held_against():
    played = [
        outcome(task, False, numbers={"score": score}, action_tokens=20)
        for task, score in zip("abcd", (0, 1, 0.5, 0.5), strict=True)
    ]
    result = result_of(plan("abcd"), played, env_id="x")
    score = result["metrics"]["score"]
    assert score["value"] == result["reported"]["score"] == 0.5
    assert score["ci95"][0] < 0.5 < score["ci95"][1]
    # a mean score of 50 out of 100, for 20 tokens an episode
    assert result["metrics"]["score_per_token"]["value"] == pytest.approx(50 / 20)
    assert result["reported_episodes_frac"] == {"score": 3 / 4}


def test_without_a_score_success_is_held_against_tokens_and_without_tokens_nothing_is():
    assert result_of(plan("abc"), THREE, env_id="x")["metrics"]["score_per_token"]["value"] == pytest.approx(
        200 / 3 / 10
    )
    played = [outcome(task, True, action_tokens=0) for task in "abc"]
    assert not {"score_per_token", "action_tokens"} & result_of(plan("abc"), played, env_id="x")["metrics"].keys()


def test_what_is_the_same_for_all_tasks_has_no_interval():
    turns = result_of(plan("abc"), THREE, env_id="x")["metrics"]["turns"]
    assert (turns["value"], turns["ci95"]) == (2, None)


def test_tokens_are_added_up_and_cached_ones_known_only_if_every_episode_tells():
    known = [outcome("a", True, cached_tokens=60), outcome("b", True, cached_tokens=0)]
    assert result_of(plan("ab"), known, env_id="x")["tokens"] == {"prompt": 200, "cached": 60, "action": 20}
    assert result_of(plan("ab"), [known[0], THREE[1]], env_id="x")["tokens"]["cached"] is None


def test_types_are_tallied_by_their_tasks_and_those_without_tasks_are_named():
    typed = [outcome(task, task == "a", task_type="heat" if task < "c" else "cool") for task in "abc" for _ in range(2)]
    result = result_of(plan("abc", samples=2, task_types=("cool", "heat", "slice")), typed, env_id="x")
    heat = result["by_type"]["heat"]
    assert (heat["num_tasks"], heat["num_episodes"], heat["success_rate"]) == (2, 4, 0.5)
    assert list(result["by_type"]) == ["cool", "heat"]
    assert result["types_without_tasks"] == ["slice"]


def test_an_episode_that_broke_before_its_type_was_known_counts_with_its_task():
    broken = {"ending": Ending.ENV_ERROR, "task_type": None}
    played = [outcome("a", True, task_type="heat"), outcome("a", False, **broken)]
    played += [outcome("b", True, task_type="heat"), outcome("b", True, task_type="heat")]
    played += [outcome("c", False, **broken), outcome("c", False, **broken)]
    by_type = result_of(plan("abc", samples=2), played, env_id="x")["by_type"]
    assert (by_type["heat"]["num_tasks"], by_type["heat"]["num_episodes"]) == (2, 4)
    assert by_type["heat"]["success_rate"] == 3 / 4
    assert (by_type["unknown"]["num_tasks"], by_type["unknown"]["success_rate"]) == (1, 0)


def test_tasks_without_types_are_not_listed_by_type():
    assert result_of(plan("abc"), THREE, env_id="x")["by_type"] == {}


def test_broken_episodes_are_counted_and_not_won():
    result = result_of(plan("ab"), [outcome("a", True), outcome("b", False, ending=Ending.TIMEOUT)], env_id="x")
    assert (result["endings"]["timeout"], result["success_rate"]) == (1, 0.5)


def test_every_episode_is_kept_and_read_back():
    played = [
        outcome("a", True, numbers={"score": 0.25}, flags={"late": 1}, info={"trials": 2}, task_type="heat"),
        outcome("a", False, cached_tokens=3, policy_version=5, ending=Ending.ENV_ERROR, info={"error": "gone"}),
    ]
    result = json.loads(json.dumps(result_of(plan("a", samples=2), played, env_id="x")))
    assert [from_record(record) for record in result["tasks"]] == [(("a", 0), played[0]), (("a", 1), played[1])]
    assert result["tasks"][1]["return"] == 0
    assert result["tasks"][1]["turns"] == 2
