from pathlib import Path

import pytest

from agentrl.config import Loaded, diff, dump, explain, load_config, show
from agentrl.errors import NotFound

TEXT = """\
env: {id: agentrl/Guess-v0, options: {digits: 3}}
model: {path: tiny}
algorithm: {name: c_rf}
training: {learning_rate: 1e-6}
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch) -> Loaded:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(TEXT)
    return load_config("x.yaml")


def test_show_gives_every_setting_with_value_and_origin(loaded):
    rows = show(loaded)
    assert ("training.learning_rate", 1e-6, "x.yaml:4") in rows
    assert ("env.options.digits", 3, "x.yaml:1") in rows
    assert ("training.warmup_steps", 0, "default") in rows
    assert [key for key, _, _ in rows] == list(loaded.origins)


def test_a_dumped_configuration_loads_back_equal(loaded):
    Path("again.yaml").write_text(dump(loaded.config))
    assert load_config("again.yaml").config == loaded.config


def test_diff_gives_only_what_differs(loaded):
    other = load_config("x.yaml", ["training.steps=7", "env.options.words=2"])
    assert diff(loaded, other) == [("training.steps", 100, 7), ("env.options.words", "(no such key)", 2)]


def test_explain_gives_the_default_and_the_help_of_a_key():
    assert explain("engine.temperature") == (
        "engine.temperature = 1.0\n"
        "    Sampling temperature. 1, the default, samples the very distribution that is trained."
    )


def test_explain_gives_all_keys_of_a_section():
    text = explain("tasks")
    assert [line for line in text.splitlines() if line and not line.startswith(" ")] == [
        "tasks",
        "tasks.train = train",
        "tasks.eval_in = null",
        "tasks.eval_out = null",
        "tasks.limit = null",
    ]


def test_explain_names_the_algorithm_a_knob_belongs_to():
    text = explain("algorithm.clip_high")
    assert "algorithm.clip_high = " in text
    assert " of grpo" in text


def test_explain_suggests_the_nearest_key():
    with pytest.raises(NotFound, match=r"no setting 'training\.step'\. Did you mean 'training\.steps'\?"):
        explain("training.step")
