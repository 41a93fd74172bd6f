import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

import agentrl
from agentrl.cli.main import main
from agentrl.errors import DataError, NotFound
from agentrl_envs.prompts import Prompts


def write(folder: Path, *lines: Mapping[str, object] | str) -> str:
    """Writes lines into a file of prompts and gives its name."""
    path = folder / "prompts.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return str(path)


def numbered(num: int) -> list[dict[str, object]]:
    return [{"prompt": f"Say {number}."} for number in range(num)]


SPLIT = [
    {"prompt": "Name a color.", "id": "color", "split": "train"},
    {"prompt": "Name a tool.", "id": "tool", "split": "out_of_distribution"},
    {"prompt": "Name an animal.", "id": "animal", "split": "train"},
]


def test_gymnasiums_own_check_passes(tmp_path):
    check_env(agentrl.make("agentrl/Prompts-v0", path=write(tmp_path, *SPLIT)).unwrapped, skip_render_check=True)


def test_agentrls_own_check_finds_nothing_wrong(tmp_path, capsys):
    assert main(["envs", "check", "agentrl/Prompts-v0", "--option", f"path={write(tmp_path, *SPLIT)}", "--json"]) == 0
    outcomes = {one["check"]: one["outcome"] for one in json.loads(capsys.readouterr().out)["checks"]}
    unknown = {name for name, outcome in outcomes.items() if outcome == "none"}
    recorded = "manifests are the recorded ones"  # of files of one's own there are none
    assert unknown == {recorded, "a random player", "the expert", "the oracle reaches the ceiling"}
    assert {outcomes[name] for name in outcomes.keys() - unknown} == {"ok"}


def test_the_observation_is_the_prompt_and_an_answer_ends_the_episode_unpaid(tmp_path):
    env = agentrl.make("agentrl/Prompts-v0", path=write(tmp_path, *SPLIT))
    observation, info = env.reset(options={"task_id": "tool"})
    assert (observation, info) == ("Name a tool.", {"task_id": "tool"})
    _, reward, terminated, _, info = env.step("A hammer.")
    assert (reward, terminated) == (0.0, True)
    assert "success" not in info


def test_the_file_says_which_splits_there_are_and_what_is_in_them(tmp_path):
    env = Prompts(write(tmp_path, *SPLIT))
    assert dict(env.splits) == {"train": "train", "out_of_distribution": "out_of_distribution"}
    assert {split: list(env.task_set(split).ids) for split in env.splits} == {
        "train": ["animal", "color"],
        "out_of_distribution": ["tool"],
    }
    with pytest.raises(NotFound, match=r"no split 'in_distribution'; it has: train, out_of_distribution"):
        env.task_set("in_distribution")


def test_without_splits_a_tenth_is_held_out_and_stays_so_when_prompts_are_added(tmp_path):
    few, many = (Prompts(write(tmp_path, *numbered(num))) for num in (1000, 2000))
    held_out = {env: set(env.task_set("in_distribution").ids) for env in (few, many)}
    # 1000 draws of probability 0.1: 100, with a standard deviation of 9.5
    assert 60 < len(held_out[few]) < 140
    assert held_out[few] < held_out[many]
    assert not held_out[many] & set(few.task_set("train").ids)
    assert len(many.task_set("train")) + len(held_out[many]) == 2000


def test_without_a_task_the_seed_picks_a_training_prompt(tmp_path):
    env = Prompts(write(tmp_path, *SPLIT))
    seen = [env.reset(seed=seed)[0] for seed in range(40)]
    assert set(seen) == {"Name a color.", "Name an animal."}
    assert seen == [env.reset(seed=seed)[0] for seed in range(40)]


def test_the_hash_of_a_split_changes_with_its_texts_and_not_with_the_order_of_the_lines(tmp_path):
    before = Prompts(write(tmp_path, *SPLIT)).task_set("train")
    assert Prompts(write(tmp_path, *SPLIT[::-1])).task_set("train") == before
    changed = [{**line, "prompt": str(line["prompt"]).upper()} for line in SPLIT]
    after = Prompts(write(tmp_path, *changed)).task_set("train")
    assert (after.ids, after.sha256 == before.sha256) == (before.ids, False)


def test_blank_lines_and_lines_that_only_look_like_two_are_read(tmp_path):
    env = Prompts(write(tmp_path, {"prompt": "One.", "id": "1"}, "", '{"prompt": "Two\u2028lines.", "id": "2"}'))
    assert env.reset(options={"task_id": "2"})[0] == "Two\u2028lines."


def test_every_wrong_line_is_told_with_its_number(tmp_path):
    lines = [
        {"prompt": "Say 1."},
        {"prompt": "Say 2.", "id": 2},
        {"promt": "Say 3."},
        "Say 4.",
        {"prompt": "Say 1."},
        {"prompt": "Say 6.", "id": "six"},
        {"prompt": "Say 7.", "id": "six"},
        {"prompt": "Say 8.", "split": "test"},
        {"prompt": ""},
    ]
    path = write(tmp_path, *lines)
    with pytest.raises(DataError) as caught:
        Prompts(path)
    head, *told = str(caught.value).splitlines()
    assert head == f"{path}: 8 problems"
    expected = [
        "2: id: input should be a valid string, not 2",
        "3: no prompt; add it",
        "3: unknown field 'promt'; remove it, a line has prompt, id and split",
        "4: Invalid JSON: expected value at line 1 column 1; write one JSON object a line",
        "5: this prompt stands in line 1 already; remove one",
        "7: id 'six' stands in line 6 already; remove one",
        "8: split: input should be 'train', 'in_distribution' or 'out_of_distribution', not 'test'",
        "9: prompt: string should have at least 1 character, not ''",
    ]
    assert sorted(told) == [f"  {path}:{line}" for line in expected]


def test_either_every_line_has_a_split_or_none(tmp_path):
    path = write(tmp_path, *SPLIT, {"prompt": "Name a food."})
    with pytest.raises(
        DataError, match=r"1 problem\n.*:4: no split, but other lines have one; give every line a split"
    ):
        Prompts(path)


def test_a_file_that_is_not_there_or_empty_or_not_named_is_told(tmp_path):
    with pytest.raises(DataError, match=r"^nowhere\.jsonl: no such file of prompts; correct the option path"):
        Prompts("nowhere.jsonl")
    with pytest.raises(DataError, match=r"prompts\.jsonl: no prompts; write lines such as"):
        Prompts(write(tmp_path))
    for ask in (lambda: Prompts().task_set("train"), lambda: Prompts().reset(options={"task_id": "color"})):
        with pytest.raises(DataError, match=r"no prompts of its own; set its option path to a JSONL file"):
            ask()


def test_an_unknown_prompt_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(NotFound, match=r"no prompt 'colour'\. Did you mean 'color'\?"):
        Prompts(write(tmp_path, *SPLIT)).reset(options={"task_id": "colour"})
