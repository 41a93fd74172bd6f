import json
import re

import pytest

from agentrl.errors import DataError
from agentrl.evaluation.records import EpisodeFile, differences
from agentrl.trajectory import Ending
from tests.unit.evaluation.made import outcome

DECIDED_BY = {"split": "dev", "samples": 2, "options": {"games": "made"}, "weights": "sha256:1"}


def test_episodes_are_found_again(tmp_path):
    file = EpisodeFile(tmp_path / "new" / "x.jsonl", DECIDED_BY)
    played = {("a", 0): outcome("a", True), ("a", 1): outcome("a", False), ("b", 1): outcome("b", True)}
    for (_, sample), one in played.items():
        file.write(one, sample)
    assert EpisodeFile(file.path, DECIDED_BY).finished == played


def test_what_the_environment_broke_is_played_again_and_the_last_word_counts(tmp_path):
    file = EpisodeFile(tmp_path / "x.jsonl", DECIDED_BY)
    file.write(outcome("a", False, ending=Ending.ENV_ERROR), 0)
    file.write(outcome("b", False, ending=Ending.TIMEOUT), 0)
    file.write(outcome("b", True), 0)
    assert EpisodeFile(file.path, DECIDED_BY).finished == {("b", 0): outcome("b", True)}


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_that_was_cut_off_is_dropped_and_written_over(tmp_path, cut):
    file = EpisodeFile(tmp_path / "x.jsonl", DECIDED_BY)
    file.write(outcome("a", True), 0)
    file.write(outcome("b", True), 0)
    file.path.write_bytes(file.path.read_bytes()[:-cut])
    again = EpisodeFile(file.path, DECIDED_BY)
    assert list(again.finished) == [("a", 0)]
    again.write(outcome("c", True), 0)
    assert list(EpisodeFile(file.path, DECIDED_BY).finished) == [("a", 0), ("c", 0)]


@pytest.mark.parametrize("text", ['{"decided_by": {"spl', '{"decided_by": {"split": "other"}}\n{"task', ""])
def test_a_file_without_an_episode_starts_anew(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    file = EpisodeFile(tmp_path / "x.jsonl", DECIDED_BY)
    assert file.finished == {}
    file.write(outcome("a", True), 0)
    header, _ = file.path.read_text().splitlines()
    assert json.loads(header) == {"decided_by": DECIDED_BY}
    assert list(EpisodeFile(file.path, DECIDED_BY).finished) == [("a", 0)]


def test_nothing_is_written_before_the_first_episode(tmp_path):
    EpisodeFile(tmp_path / "x.jsonl", DECIDED_BY)
    assert list(tmp_path.iterdir()) == []


def test_episodes_of_another_evaluation_are_refused_by_what_differs(tmp_path):
    EpisodeFile(tmp_path / "x.jsonl", DECIDED_BY).write(outcome("a", True), 0)
    other = {**DECIDED_BY, "samples": 3, "weights": "sha256:2"}
    told = "x.jsonl: holds episodes of another evaluation: samples 2 there, 3 here; weights 'sha256:1' there"
    with pytest.raises(DataError, match=re.escape(told)):
        EpisodeFile(tmp_path / "x.jsonl", other)
    fresh = EpisodeFile(tmp_path / "x.jsonl", other, fresh=True)
    assert fresh.finished == {}
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) > 1  # nothing is lost before there is something new
    fresh.write(outcome("b", True), 1)
    assert list(EpisodeFile(tmp_path / "x.jsonl", other).finished) == [("b", 1)]


@pytest.mark.parametrize("text", ["hello\n", '{"task_id": "a"}\n', '{"decided_by": {}}\n{"task_id": "a"}\n'])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(DataError, match="not a file of episodes"):
        EpisodeFile(tmp_path / "x.jsonl", {})


def test_differences_are_keys_with_both_values():
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == {"b": (2, 3), "c": (None, 4)}
