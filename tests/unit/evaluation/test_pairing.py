import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentrl.errors import AgentRLError, DataError, NotFound
from agentrl.evaluation.pairing import Measured, check_comparable, compare
from agentrl.evaluation.results import result_of
from agentrl.evaluation.statistics import mcnemar, paired_interval
from tests.unit.evaluation.made import outcome, plan

PROTOCOL = {"env_id": "me/Env-v0", "manifest_sha256": "0" * 64, "temperature": 1.0, "samples": 1, "profile": None}


def measured(path: Path, wins: Sequence[Sequence[bool]], *, ids: Sequence[str] = (), **facts: Any) -> Measured:
    """Writes and reads a result in which the samples of task 0, 1, ... went as `wins` says."""
    names = ids or [f"task {number}" for number in range(len(wins))]
    played = [
        outcome(name, won, numbers={"score": 0.5 * won})
        for name, samples in zip(names, wins, strict=True)
        for won in samples
    ]
    made = plan(names, samples=len(wins[0]), protocol={**PROTOCOL, "samples": len(wins[0]), **facts})
    path.write_text(json.dumps(result_of(made, played, env_id="me/Env-v0")))
    return Measured.read(path)


def once(text: str) -> list[list[bool]]:
    return [[letter == "+"] for letter in text]


def test_single_samples_are_compared_by_mcnemars_test(tmp_path: Path):
    first = measured(tmp_path / "a.json", once("+++---------"))
    second = measured(tmp_path / "b.json", once("++-+++++----"))
    found = compare(first, second)
    assert (found.first, found.second) == (3 / 12, 7 / 12)
    assert found.gained == tuple(f"task {number}" for number in (3, 4, 5, 6, 7))
    assert found.lost == ("task 2",)
    assert found.p_value == mcnemar(5, 1) == pytest.approx(2 * (1 + 6) / 64)
    assert found.ci95 == paired_interval(2, 5, 1, 4)
    assert not found.is_supported


def test_a_result_does_not_differ_from_itself(tmp_path: Path):
    one = measured(tmp_path / "a.json", once("++--"))
    found = compare(one, one)
    assert (found.difference, found.p_value, found.gained, found.lost) == (0, 1, (), ())
    assert found.ci95 is not None
    assert found.ci95[0] < 0 < found.ci95[1]


def test_several_samples_are_compared_by_the_means_of_tasks(tmp_path: Path):
    first = measured(tmp_path / "a.json", [[True, False], [False, False], [True, True]])
    second = measured(tmp_path / "b.json", [[True, True], [True, False], [True, False]])
    found = compare(first, second)
    assert found.difference == pytest.approx((0.5 + 0.5 - 0.5) / 3)
    # of the eight sign choices of three halves, all but none reach a half: |sum| is 1.5 or 0.5
    assert (found.p_value, found.test) == (1, "paired randomization test")
    assert (found.gained, found.lost) == (("task 0", "task 1"), ("task 2",))
    assert found.ci95 == (-0.5, 0.5)


def test_numbers_of_samples_may_differ(tmp_path: Path):
    first = measured(tmp_path / "a.json", once("+-"))
    second = measured(tmp_path / "b.json", [[True, True], [True, False]])
    assert check_comparable(first, second) == {}
    assert compare(first, second).difference == pytest.approx(0.25)


def test_scores_are_compared_and_unknown_metrics_named(tmp_path: Path):
    first, second = measured(tmp_path / "a.json", once("+--")), measured(tmp_path / "b.json", once("+++"))
    found = compare(first, second, "score")
    assert (found.first, found.second) == (pytest.approx(0.5 / 3), 0.5)
    assert found.p_value == pytest.approx(2 / 4)
    with pytest.raises(AgentRLError, match="Did you mean 'score'"):
        compare(first, second, "scores")


def test_a_difference_in_every_task_alike_has_no_bootstrap_interval(tmp_path: Path):
    first = measured(tmp_path / "a.json", [[False, False]] * 8)
    found = compare(first, measured(tmp_path / "b.json", [[True, True]] * 8))
    assert found.ci95 is None
    assert found.p_value == pytest.approx(2 / 2**8)
    assert found.is_supported


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("manifest_sha256", "1" * 64),
        ("profile", {"name": "x", "sha256": "2" * 64, "changed": []}),
        ("temperature", 0.5),
    ],
)
def test_results_that_were_measured_otherwise_are_refused_unless_what_differs_is_named(tmp_path: Path, key, value):
    first, second = measured(tmp_path / "a.json", once("+-")), measured(tmp_path / "b.json", once("+-"), **{key: value})
    with pytest.raises(AgentRLError, match=re.escape(f"ignore it with --force {key}")):
        check_comparable(first, second)
    assert list(check_comparable(first, second, [key])) == [key]


def test_a_profile_is_compared_by_name_and_hash_and_what_was_changed_of_it_by_itself(tmp_path: Path):
    stamp = {"name": "x", "sha256": "2" * 64}
    first = measured(tmp_path / "a.json", once("+-"), profile={**stamp, "changed": []})
    second = measured(tmp_path / "b.json", [[True, True], [True, False]], profile={**stamp, "changed": ["samples"]})
    assert check_comparable(first, second) == {}
    third = measured(tmp_path / "c.json", once("+-"), profile={**stamp, "sha256": "3" * 64, "changed": []})
    assert check_comparable(first, third, ["profile"]) == {"profile": (f"x {'2' * 12}", f"x {'3' * 12}")}


def test_a_player_without_a_temperature_is_compared_with_a_model(tmp_path: Path):
    first = measured(tmp_path / "a.json", once("+-"))
    assert check_comparable(first, measured(tmp_path / "b.json", once("+-"), temperature=None)) == {}


def test_ignoring_what_does_not_differ_is_a_mistake(tmp_path: Path):
    first, second = measured(tmp_path / "a.json", once("+-")), measured(tmp_path / "b.json", once("+-"), temperature=0)
    with pytest.raises(AgentRLError, match=r"--force temperatur: it does not differ. Did you mean 'temperature'"):
        check_comparable(first, second, ["temperatur"])


def test_with_another_manifest_the_shared_tasks_are_compared(tmp_path: Path):
    first = measured(tmp_path / "a.json", once("+-+"), ids=["a", "b", "c"])
    second = measured(tmp_path / "b.json", once("++"), ids=["b", "d"], manifest_sha256="1" * 64)
    check_comparable(first, second, ["manifest_sha256"])
    found = compare(first, second)
    assert (found.num_tasks, found.gained) == (1, ("b",))
    with pytest.raises(AgentRLError, match="no task in common"):
        compare(first, measured(tmp_path / "c.json", once("+"), ids=["z"]))


def test_one_manifest_and_other_tasks_are_a_changed_file(tmp_path: Path):
    first = measured(tmp_path / "a.json", once("+-"))
    with pytest.raises(DataError, match="one of them was changed"):
        check_comparable(first, measured(tmp_path / "b.json", once("+-"), ids=["x", "y"]))


def test_what_is_no_whole_result_is_refused(tmp_path: Path):
    with pytest.raises(NotFound, match=r"gone\.json: no such result"):
        Measured.read(tmp_path / "gone.json")
    path = measured(tmp_path / "a.json", once("+-")).path
    facts = json.loads(path.read_text())
    for damage, told in (
        ({"tasks": facts["tasks"][:1]}, "has 1 of 2 tasks"),
        ({"tasks": [facts["tasks"][0]] * 2}, "has 1 of 2 tasks, 1 not 1 times"),
        ({"tasks": [{"task_id": "a"}]}, "not a result"),
    ):
        path.write_text(json.dumps(facts | damage))
        with pytest.raises(DataError, match=told):
            Measured.read(path)
    path.write_text(json.dumps({key: value for key, value in facts.items() if key != "protocol"}))
    with pytest.raises(DataError, match="does not say its protocol"):
        Measured.read(path)


def simulated(wins: Sequence[bool]) -> Measured:
    tasks = {str(number): [outcome(str(number), won)] for number, won in enumerate(wins)}
    return Measured(Path("simulated"), {"samples": 1}, tasks)


def test_equal_policies_are_told_apart_no_more_often_than_the_test_says():
    rng = np.random.default_rng(8)
    num, supported = 400, 0
    for _ in range(num):
        rates = rng.uniform(size=134)
        first, second = (simulated((rng.uniform(size=134) < rates).tolist()) for _ in range(2))
        supported += compare(first, second).is_supported
    assert supported <= 0.05 * num + 4 * math.sqrt(num * 0.05 * 0.95)
