import shutil
from pathlib import Path

import pytest

from agentrl.config import RunConfig, load_config
from agentrl.errors import ConfigError
from agentrl.evaluation.protocol import conditions, weights_id
from agentrl.tasks import TaskSet

TASKS = TaskSet("train", ["1", "2"], "0" * 64)
SAMPLING = {"temperature": 0.5, "top_p": 0.9}


def config(tmp_path: Path, *overrides: str) -> RunConfig:
    path = tmp_path / "run.yaml"
    path.write_text("env: {id: agentrl/ALFWorld-v0}\nmodel: {path: tiny-alfworld}\nalgorithm: {name: c_rf}\n")
    return load_config(str(path), overrides).config


def test_the_conditions_are_those_that_the_environment_and_the_model_meet(tmp_path):
    found = conditions(config(tmp_path, "env.prompt=alfworld/step"), TASKS, samples=3, sampling=SAMPLING)
    # 50 turns are ALFWorld's own limit, two turns of history the prompt's
    assert {key: found[key] for key in ("max_turns", "history", "temperature", "top_p", "samples", "num_tasks")} == {
        "max_turns": 50,
        "history": "2 turns",
        "temperature": 0.5,
        "top_p": 0.9,
        "samples": 3,
        "num_tasks": 2,
    }
    assert found["profile"] is None


def test_where_the_files_are_is_no_condition(tmp_path):
    here, there = (
        conditions(
            config(tmp_path, f"env.options={{games: generated, data: {place}}}"), TASKS, samples=1, sampling=SAMPLING
        )
        for place in ("here", "there")
    )
    assert here == there
    assert here["options"] == {"games": "generated"}


def test_a_prompt_file_is_known_by_its_name_and_its_words(tmp_path):
    for folder, words in (("a", "Hello"), ("b", "Hello"), ("c", "Goodbye")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.md").write_text(f"## turn\n{words} {{observation}}\n")
    same, moved, changed = (
        conditions(config(tmp_path, f"env.prompt={tmp_path / folder / 'mine.md'}"), TASKS, samples=1, sampling=SAMPLING)
        for folder in "abc"
    )
    assert same == moved
    assert (same["prompt"], changed["prompt"]) == ("mine.md", "mine.md")
    assert same["prompt_sha256"] != changed["prompt_sha256"]


def test_a_player_without_a_model_has_neither_prompt_nor_temperature(tmp_path):
    found = conditions(config(tmp_path, "env.prompt=alfworld/step"), TASKS, samples=1, sampling=None)
    assert {found[key] for key in ("prompt", "history", "temperature", "top_p", "max_tokens")} == {None}
    assert found["max_turns"] == 50


def test_models_are_told_apart_by_weights_and_tokenizer_and_not_by_their_folder(tiny_model_dir, tmp_path):
    known = weights_id(tiny_model_dir)
    copy = tmp_path / "copy"
    shutil.copytree(tiny_model_dir, copy)
    assert weights_id(copy) == known
    (copy / "optimizer.pt").write_bytes(b"of no account")
    assert weights_id(copy) == known
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        before = weights_id(copy)
        (copy / name).write_bytes((copy / name).read_bytes() + b" ")
        assert weights_id(copy) != before


def test_a_folder_without_weights_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"no \*\.safetensors in"):
        weights_id(tmp_path)
