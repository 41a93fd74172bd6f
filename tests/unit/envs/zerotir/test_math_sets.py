import json
import logging
from pathlib import Path

import pytest

from agentrl.errors import DataError, NotFound
from agentrl.tasks import manifest_sha256
from agentrl_envs.zerotir.env import ZeroTIR
from agentrl_envs.zerotir.math_sets import MathKnobs, MathSets, manifests, problem_hash, read_set


def write(folder: Path, name: str, rows: list[tuple[str, str]]) -> str:
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps({"problem": problem, "answer": answer}) + "\n" for problem, answer in rows))
    return str(file)


@pytest.fixture
def knobs(tmp_path: Path) -> MathKnobs:
    """Three small sets; one problem is in two of them."""
    write(tmp_path, "some", [("What is 1 + 1?", "2"), ("What is  2 + 2?", "4"), ("What is 1 + 1?", "2")])
    write(tmp_path, "near", [("what is 2 + 2?", "4")])
    write(tmp_path, "far", [("What is 3?", "3")])
    return MathKnobs(data=str(tmp_path), train=["some"], in_distribution=["near"], out_of_distribution=["far"])


def test_what_is_evaluated_is_not_trained_on_and_the_log_says_so(knobs, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        sets = MathSets(knobs)
    assert list(sets.task_set("train").ids) == [f"some/{problem_hash('What is 1 + 1?')}"]
    assert "left out: 1 that are evaluated, 0 whose answer is no formula" in caplog.text
    assert sets.problem(sets.task_set("in_distribution").ids[0]).question == "what is 2 + 2?"
    assert sets.problem(sets.task_set("out_of_distribution").ids[0]).kind == "far"


def test_the_manifest_is_the_hash_of_the_ids(knobs) -> None:
    tasks = MathSets(knobs).task_set("train")
    assert tasks.sha256 == manifest_sha256(tasks.ids)


def test_the_same_problem_set_in_other_ways_is_the_same_and_another_sign_is_not(tmp_path: Path) -> None:
    rows = [(r"Solve $x^2 + 1 = \left( 3 \right)$.", "1"), ("Solve $x^2 - 1 = (3)$.", "2")]
    data = str(Path(write(tmp_path, "some", rows)).parent)
    write(tmp_path, "same", [("Solve  x^2+1=(3)", "1")])
    sets = MathSets(MathKnobs(data=data, train=["some"], in_distribution=["same"], out_of_distribution=["same"]))
    assert [sets.problem(id).answer for id in sets.task_set("train").ids] == ["2"]


def test_a_hash_does_not_depend_on_spaces_and_capitals() -> None:
    assert problem_hash("What is\n 1?") == problem_hash("what is 1?") != problem_hash("what is 2?")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", ":1: not a JSON object"),
        ("[]", ":1: not a JSON object"),
        ('{"problem": "x"}', "'answer'"),
        ('{"problem": "x", "answer": 3}', "must be texts"),
        ('{"problem": " ", "answer": "3"}', "not empty"),
        ('{"problem": "x", "answer": "3"}\n{"problem": "X", "answer": "4"}', ":2: the same problem stands above"),
        ("", "there is no problem in it"),
    ],
)
def test_a_bad_row_is_told_with_its_line(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(line)
    with pytest.raises(DataError, match=problem):
        read_set(tmp_path / "bad.jsonl")


def test_a_missing_set_is_told_with_those_there_are(knobs, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file .*nowhere\.jsonl; sets there: far, near, some"):
        MathSets(MathKnobs(data=str(tmp_path), train=["nowhere"]))


def test_a_set_of_the_hub_is_told_how_to_become_a_file(knobs, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'owner/name': .* write a set of the hub to \.jsonl as envs/README\.md shows"):
        MathSets(MathKnobs(data=str(tmp_path), train=["owner/name"]))


def test_without_a_folder_it_is_told_how_to_name_one(monkeypatch) -> None:
    monkeypatch.delenv("AGENTRL_DATA", raising=False)
    with pytest.raises(DataError, match=r"set env\.options\.data, or AGENTRL_DATA"):
        MathSets(MathKnobs())


def test_a_changed_public_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not those of the set 'aime24', of which there are 30"):
        read_set(Path(write(tmp_path, "aime24", [("x", "1")])))


def test_an_unknown_problem_is_told(knobs) -> None:
    with pytest.raises(NotFound, match="no problem"):
        MathSets(knobs).problem("some/0")


@pytest.mark.data
def test_the_public_sets_are_what_their_manifests_say(data_dir: Path) -> None:
    files = sorted((data_dir / "math").glob("*.jsonl"))
    assert {file.stem for file in files} == set(manifests())
    assert sum(len(read_set(file)) for file in files) == 23_950 - 2  # two training problems of MATH come twice
    assert sum(len(known["text"]) for known in manifests().values()) == 13  # type: ignore[arg-type]


@pytest.mark.data
def test_math_is_trained_without_what_is_evaluated(data_dir: Path) -> None:
    data, num = str(data_dir / "math"), 8_521 - 2 - 6  # two come twice, six have answers that are text
    sets = MathSets(MathKnobs(data=data))
    assert len(sets.task_set("train")) == num
    assert len(sets.task_set("in_distribution")) == 500
    assert len(sets.task_set("out_of_distribution")) == 4 * 30
    olympiad = MathSets(MathKnobs(data=data, out_of_distribution=["olympiadbench"]))
    assert len(olympiad.task_set("train")) == num - 3  # three of its problems are MATH's


@pytest.mark.data
def test_knights_and_knaves_from_files_are_judged_by_roles(data_dir: Path, any_sandbox) -> None:
    del any_sandbox
    data = str(data_dir / "math")
    env = ZeroTIR(source="math", data=data, train=["kk_train"], in_distribution=["kk_3ppl_test"])
    task_id = env.task_set("in_distribution").ids[0]
    gold = env.source.problem(task_id).answer
    env.reset(options={"task_id": task_id})
    assert env.step(f"\\boxed{{{gold}}}")[1] == 1.0
    env.reset(options={"task_id": task_id})
    swapped = gold.replace("knight", "x").replace("knave", "knight").replace("a x", "a knave")
    assert env.step(f"\\boxed{{{swapped}}}")[1] == 0.0
