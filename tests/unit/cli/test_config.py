import json
from pathlib import Path

import pytest

from tests.unit.cli.command import Command, write_guess_config


@pytest.fixture
def told(agentrl: Command) -> Command:
    """Gives the command in a folder with guess.yaml."""
    write_guess_config(Path(), "somewhere/model")
    return agentrl


def test_show_gives_each_value_and_where_it_is_from(told):
    rows = [line.split() for line in told("config", "show", "guess.yaml", "--set", "training.steps=7").splitlines()]
    assert ["training.steps", "7", "--set", "training.steps=7"] in rows
    assert ["env.id", "agentrl/Guess-v0", "guess.yaml:1"] in rows
    assert ["engine.temperature", "1.0", "default"] in rows


def test_show_gives_json(told):
    shown = json.loads(told("config", "show", "guess.yaml", "--json"))
    assert shown["rollout.group_size"] == {"value": 4, "origin": "guess.yaml:5"}


def test_validate_tells_every_problem_of_every_file(told):
    Path("bad.yaml").write_text("extends: guess.yaml\ntraining: {stesp: 3}\nlogging: {save_every: -1}\n")
    error = told.fails("config", "validate", "bad.yaml")
    assert "bad.yaml:2: training.stesp: unknown key. Did you mean 'steps'?" in error
    assert "bad.yaml:3: logging.save_every" in error
    assert told("config", "validate", "guess.yaml") == "guess.yaml: valid\n"


def test_diff_gives_what_differs(told):
    Path("other.yaml").write_text("extends: guess.yaml\ntraining: {steps: 9}\n")
    assert json.loads(told("config", "diff", "guess.yaml", "other.yaml", "--json")) == {"training.steps": [2, 9]}
    assert told("config", "diff", "guess.yaml", "guess.yaml") == "The two are the same.\n"


def test_explain_gives_the_help_of_a_key(told):
    assert told("config", "explain", "rollout.group_size").startswith(
        "rollout.group_size = 1\n    Episodes of each task"
    )


def test_a_missing_configuration_is_a_mistake(told):
    assert "no configuration 'nope.yaml'" in told.fails("config", "show", "nope.yaml")
