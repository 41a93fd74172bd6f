import json
import textwrap
from pathlib import Path

GUESS = "agentrl/Guess-v0"


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


def test_the_expert_of_guess_wins_every_episode(agentrl):
    assert "success 100.0 % of 10 episodes" in agentrl("envs", "check", GUESS, "--episodes", "10")


def test_an_environment_that_forgets_its_seed_fails_the_check(agentrl, capsys):
    from agentrl.cli.main import main

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
    assert {one["outcome"] for one in found["checks"]} == {"ok"}


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
