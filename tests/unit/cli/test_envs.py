import json
import textwrap
from pathlib import Path

import pytest

from agentrl.cli.main import main

GUESS = "agentrl/Guess-v0"
SPLITS = ("train", "in_distribution", "out_of_distribution")


def test_list_gives_every_split_with_its_size(agentrl):
    rows = json.loads(agentrl("envs", "list", "--json"))["splits"]
    sizes = {row["split"]: row["num_tasks"] for row in rows if row["id"] == GUESS}
    assert sizes == {"train": 8, "in_distribution": 8, "out_of_distribution": 2}


def test_show_gives_the_text_and_the_turn_limit(agentrl):
    shown = agentrl("envs", "show", GUESS)
    assert "Find a hidden digit" in shown
    assert "at most 6 turns" not in shown.splitlines()[0]
    assert json.loads(agentrl("envs", "show", GUESS, "--json"))["max_turns"] == 6


def test_the_shipped_environments_keep_their_contract(agentrl):
    for id in (GUESS, "agentrl/ALFWorld-v0"):
        found = json.loads(agentrl("envs", "check", id, "--episodes", "2", "--json"))
        assert {one["outcome"] for one in found["checks"]} == {"ok"}


@pytest.mark.data
@pytest.mark.parametrize("id", ["agentrl/ALFWorld-v0 games=official", "agentrl/WebShop-v0 products=official"])
def test_the_official_tasks_keep_the_contract_and_are_the_recorded_ones(agentrl, id, data_dir, monkeypatch):
    monkeypatch.setenv("AGENTRL_DATA", str(data_dir))
    name, option = id.split()
    found = json.loads(agentrl("envs", "check", name, "--option", option, "--episodes", "12", "--json"))
    assert {one["outcome"] for one in found["checks"]} == {"ok"}
    assert found["options"] == dict([option.split("=")])


@pytest.mark.data
def test_the_original_split_of_webshop_leaks_and_the_check_says_which_requests(agentrl, capsys, data_dir, monkeypatch):
    monkeypatch.setenv("AGENTRL_DATA", str(data_dir))
    options = ["--option", "products=official", "--option", "split_by=original"]
    assert main(["envs", "check", "agentrl/WebShop-v0", *options, "--episodes", "2"]) == 1
    (failed,) = [line for line in capsys.readouterr().out.splitlines() if "FAIL" in line]
    assert "also trained on: dev: 2 contents" in failed
    assert "test: 1 contents" in failed


def test_data_that_is_not_there_is_a_mistake_and_no_finding(agentrl):
    assert "set its option path to a JSONL file" in agentrl.fails("envs", "check", "agentrl/Prompts-v0")
    assert "--tokenizer ./nowhere: cannot be loaded" in agentrl.fails(
        "envs", "check", GUESS, "--tokenizer", "./nowhere"
    )


def test_observations_are_measured_in_tokens_of_a_model_when_asked(agentrl):
    found = json.loads(agentrl("envs", "check", "agentrl/ALFWorld-v0", "--tokenizer", "tiny-alfworld", "--json"))
    (lengths,) = [one["measured"] for one in found["checks"] if one["check"] == "lengths of observations"]
    assert 1 < lengths["mean_tokens"] < lengths["max_tokens"] <= lengths["max_episode_tokens"]
    assert lengths["max_tokens"] < lengths["max_characters"]


def test_a_manifest_is_printed_and_two_of_them_are_compared(agentrl):
    train, eval_in, eval_out = (agentrl("envs", "manifest", GUESS, split) for split in SPLITS)
    assert [line.split("\t")[0] for line in eval_out.splitlines()] == ["3", "7"]
    for name, text in (("train.txt", train), ("in.txt", eval_in), ("out.txt", eval_out)):
        Path(name).write_text(text)
    assert json.loads(agentrl("envs", "leaks", "train.txt", "out.txt", "--json")) == {
        "ids": [],
        "contents": [],
        "families": [],
    }
    assert "no split 'inn'" in agentrl.fails("envs", "manifest", GUESS, "inn")
    assert main(["envs", "leaks", "train.txt", "in.txt"]) == 1


def test_leaks_between_manifests_are_counted_with_examples(agentrl, capsys):
    Path("train.txt").write_text("a\t1\tx\nb\t2\ty\n")
    Path("eval.txt").write_text("a\t9\tx\nc\t2\tz\nd\t8\tx\n")
    assert main(["envs", "leaks", "train.txt", "eval.txt"]) == 1
    *shown, sentence = capsys.readouterr().out.splitlines()
    assert [line.split() for line in shown] == [["ids", "1", "a"], ["contents", "1", "c"], ["families", "1", "x"]]
    assert sentence == "  train.txt holds what eval.txt evaluates: take these tasks out of training"
    Path("eval.txt").write_text("d\t8\tz\n")
    assert main(["envs", "leaks", "train.txt", "eval.txt"]) == 0
    assert capsys.readouterr().out.endswith("  eval.txt holds nothing of train.txt\n")


def test_the_expert_of_guess_wins_every_episode(agentrl):
    assert "success 100.0 % of 10 episodes" in agentrl("envs", "check", GUESS, "--episodes", "10")


def test_an_environment_that_forgets_its_seed_fails_the_check(agentrl, capsys):
    agentrl("envs", "new", "moody")
    module = Path("moody.py").read_text()
    Path("moody.py").write_text(
        module.replace("self.at = 0", 'self.at = 0; Moody.mood = 1 - getattr(Moody, "mood", 0)').replace(
            'f"You are at {self.at}."', 'f"You are at {self.at}, mood {Moody.mood}."'
        )
    )
    assert main(["envs", "check", "moody:me/Moody-v0"]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if "FAIL" in line]
    assert any("one seed, one task" in line and "differs from turn 1 on" in line for line in failed)


def test_the_scaffold_keeps_the_contract_as_it_is(agentrl):
    told = agentrl("envs", "new", "my_env")
    assert 'env: {id: "my_env:me/MyEnv-v0", prompt: my_env.md}' in told
    found = json.loads(agentrl("envs", "check", "my_env:me/MyEnv-v0", "--json"))
    not_ok = {one["check"]: one["outcome"] for one in found["checks"] if one["outcome"] != "ok"}
    assert not_ok == {"manifests are the recorded ones": "none"}


def test_the_scaffold_has_a_prompt_that_loads(agentrl):
    from agentrl.prompts import Prompt

    agentrl("envs", "new", "my_env")
    assert Prompt.load(Path("my_env.md")).action("I go <action>up</action>") == "up"


def test_the_scaffold_overwrites_nothing(agentrl):
    Path("my_env.md").write_text("mine")
    assert "my_env.md exists" in agentrl.fails("envs", "new", "my_env")
    assert not Path("my_env.py").exists()
    assert "not the name of a module" in agentrl.fails("envs", "new", "My-Env")


def test_unknown_environments_and_options_say_what_there_is(agentrl):
    assert "Did you mean: `Guess`?" in agentrl.fails("envs", "show", "agentrl/Gues-v0")
    assert "No module named 'nowhere'" in agentrl.fails("envs", "show", "nowhere:me/MyEnv-v0")
    assert "lists its options" in agentrl.fails("envs", "show", GUESS, "--option", "digits=3")


def test_a_plugin_that_fails_to_import_is_told_and_the_rest_is_listed(agentrl):
    metadata = Path("broken-1.0.dist-info")
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    metadata.joinpath("entry_points.txt").write_text(
        textwrap.dedent("""\
        [agentrl.envs]
        broken = a_module_that_is_not
        """)
    )
    shown = agentrl("envs", "list")
    assert "environment plugin 'broken' (a_module_that_is_not) failed to import" in shown
    assert GUESS in shown
