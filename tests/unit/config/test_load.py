import subprocess
import sys
from pathlib import Path

import pytest

from agentrl.config import load_config
from agentrl.config.load import config_of, read_section
from agentrl.config.schema import EnvConfig, Section
from agentrl.errors import ConfigError, NotFound

MINIMAL = """\
env: {id: agentrl/Guess-v0}
model: {path: tiny}
algorithm: {name: c_rf}
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file into the working folder, so that labels are bare file names."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, text: str) -> str:
        Path(name).write_text(text)
        return name

    return write_file


def problems(name: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(name, overrides)
    return [line.strip() for line in str(caught.value).splitlines()]


def test_three_lines_are_a_configuration(write):
    loaded = load_config(write("x.yaml", MINIMAL))
    assert loaded.config.env.id == "agentrl/Guess-v0"
    assert loaded.config.algorithm.name == "c_rf"
    assert loaded.config.engine.temperature == 1.0
    assert loaded.config.sft is None


def test_every_value_knows_where_it_was_written(write):
    name = write("x.yaml", MINIMAL + "training:\n  steps: 7\n")
    origins = load_config(name, ["training.learning_rate=1e-3"]).origins
    assert origins["model.path"] == "x.yaml:2"
    assert origins["training.steps"] == "x.yaml:5"
    assert origins["training.learning_rate"] == "--set training.learning_rate=1e-3"
    assert origins["training.seed"] == "default"


def test_origins_cover_exactly_the_settings(write):
    loaded = load_config(write("x.yaml", MINIMAL + "sft: {noise: 0.5}\n"), ["env.options.games=generated"])
    assert loaded.origins["env.options.games"] == "--set env.options.games=generated"
    assert "env.options" not in loaded.origins
    assert loaded.origins["sft.noise"] == "x.yaml:4"
    assert loaded.origins["sft.steps"] == "default"
    assert loaded.origins["logging.trackers"] == "default"


def test_a_child_merges_mappings_and_replaces_lists(write):
    write("base.yaml", MINIMAL + "training: {steps: 7, seed: 3}\nlogging: {trackers: [console, jsonl]}\n")
    loaded = load_config(write("x.yaml", "extends: base.yaml\ntraining: {steps: 8}\nlogging: {trackers: [jsonl]}\n"))
    assert (loaded.config.training.steps, loaded.config.training.seed) == (8, 3)
    assert loaded.config.logging.trackers == ("jsonl",)
    assert loaded.origins["training.steps"] == "x.yaml:2"
    assert loaded.origins["training.seed"] == "base.yaml:4"


def test_extends_is_relative_to_the_file(write, tmp_path, monkeypatch):
    write("base.yaml", MINIMAL)
    write("x.yaml", "extends: base.yaml\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_config(str(tmp_path / "x.yaml")).config.model.path == "tiny"


def test_extends_takes_a_shipped_name(write):
    loaded = load_config(write("x.yaml", "extends: quickstart\ntraining: {steps: 1}\n"))
    assert loaded.config.training.steps == 1
    assert loaded.origins["env.id"].startswith("configs/")


def test_a_file_that_extends_itself_is_refused(write):
    write("a.yaml", "extends: b.yaml\n")
    write("b.yaml", "extends: a.yaml\n")
    with pytest.raises(ConfigError, match=r"a\.yaml: extends itself; remove one 'extends' of a\.yaml and b\.yaml"):
        load_config("a.yaml")


def test_extends_names_one_file_that_exists(write):
    with pytest.raises(ConfigError, match=r"x\.yaml:1: extends: expected the name of one file, not \['a', 'b'\]"):
        load_config(write("x.yaml", "extends: [a, b]\n"))
    with pytest.raises(ConfigError, match=r"x\.yaml:1: extends: no configuration 'gone\.yaml'"):
        load_config(write("x.yaml", "extends: gone.yaml\n"))


def test_the_last_override_wins(write):
    name = write("x.yaml", MINIMAL)
    assert load_config(name, ["training.steps=1", "training.steps=2"]).config.training.steps == 2


def test_overrides_are_typed_as_yaml_is(write):
    overrides = ["env.options={games: official, sizes: [1, 2]}", "tasks.eval_in=null", "logging.trackers=[jsonl]"]
    config = load_config(write("x.yaml", MINIMAL + "tasks: {eval_in: valid_seen}\n"), overrides).config
    assert config.env.options == {"games": "official", "sizes": [1, 2]}
    assert config.tasks.eval_in is None
    assert config.logging.trackers == ("jsonl",)


def test_a_section_set_to_null_forgets_its_origins(write):
    name = write("x.yaml", MINIMAL + "sft: {steps: 5}\n")
    loaded = load_config(name, ["sft=null", "sft.noise=0.1"])
    assert loaded.config.sft is not None
    assert loaded.config.sft.steps == 300
    assert loaded.origins["sft.steps"] == "default"


@pytest.mark.parametrize("text", ["training.steps", "=3", "training..steps=3"])
def test_an_override_without_key_or_value_is_refused(write, text):
    with pytest.raises(ConfigError, match=r"expected section\.key=value"):
        load_config(write("x.yaml", MINIMAL), [text])


def test_all_problems_are_reported_at_once_with_their_places(write):
    text = """\
env: {id: agentrl/Guess-v0}
model: {path: tiny, dtype: float16}
algorithm:
  name: grpo
  clip_hgh: 0.28
training:
  learning_rat: 1e-6
  steps: -3
  steps: -4
rollout: {group_size: 4}
"""
    lines = problems(write("bad.yaml", text), "engine.temperature=hot")
    assert lines[0] == "bad.yaml: 6 problems"
    assert sorted(lines[1:]) == [
        "--set engine.temperature=hot: engine.temperature: "
        "input should be a valid number, unable to parse string as a number, not 'hot'",
        "bad.yaml:2: model.dtype: input should be 'float32' or 'bfloat16', not 'float16'",
        "bad.yaml:5: algorithm.clip_hgh: unknown key. Did you mean 'clip_high'?",
        "bad.yaml:7: training.learning_rat: unknown key. Did you mean 'learning_rate'?",
        "bad.yaml:9: training.steps: given twice, first at bad.yaml:8; keep one",
        "bad.yaml:9: training.steps: input should be greater than or equal to 0, not -4",
    ]


def test_a_key_of_another_section_is_told_so(write):
    lines = problems(write("x.yaml", MINIMAL + "training: {group_size: 8}\n"))
    assert lines[1] == "x.yaml:4: training.group_size: unknown key. Did you mean 'rollout.group_size'?"


def test_a_required_key_is_asked_for_at_its_section(write):
    lines = problems(write("x.yaml", "env: {max_turns: 3}\nalgorithm: {name: c_rf}\n"))
    assert lines[1:] == ["x.yaml:1: env.id: required, but not set", "x.yaml: model: required, but not set"]


def test_a_section_that_is_no_mapping_is_refused(write):
    lines = problems(write("x.yaml", MINIMAL + "training: fast\n"))
    assert lines[1:] == ["x.yaml:4: training: expected keys and values, not 'fast'"]


def test_unknown_names_are_refused_with_the_nearest(write):
    text = "env: {id: x}\nmodel: {path: y}\nalgorithm: {name: grop}\nlogging:\n  trackers: [console, jsonn]\n"
    lines = problems(write("x.yaml", text), "engine.name=hff")
    assert [line.partition(" There are")[0] for line in lines[1:]] == [
        "x.yaml:3: algorithm.name: no algorithm named 'grop'. Did you mean 'grpo'?",
        "--set engine.name=hff: engine.name: no engine named 'hff'. Did you mean 'hf'?",
        "x.yaml:5: logging.trackers.1: no tracker named 'jsonn'. Did you mean 'jsonl'?",
    ]


def test_a_missing_algorithm_is_asked_for(write):
    lines = problems(write("x.yaml", "env: {id: x}\nmodel: {path: y}\n"))
    assert lines[1].startswith("x.yaml: algorithm.name: required; one of ")


def test_a_prompt_that_does_not_exist_is_refused(write):
    lines = problems(write("x.yaml", MINIMAL), "env.prompt=gone.md")
    assert lines[1].startswith("--set env.prompt=gone.md: env.prompt: no prompt 'gone.md'.")


def test_one_episode_a_task_is_refused_for_algorithms_that_compare_groups(write):
    lines = problems(write("x.yaml", MINIMAL), "algorithm.name=grpo", "rollout.group_size=1")
    assert lines[1] == (
        "--set rollout.group_size=1: rollout.group_size: 1 leaves grpo nothing to compare an episode with, "
        "every advantage would be 0; set 2 or more (8 is usual), or algorithm.name: c_rf"
    )


def test_a_turn_must_leave_room_for_its_prompt(write):
    lines = problems(write("x.yaml", MINIMAL + "engine: {max_tokens: 64, context_tokens: 64}\n"))
    assert lines[1:] == [
        "x.yaml:4: engine.max_tokens: 64 leaves no room for a prompt in engine.context_tokens; set less than 64"
    ]


def test_there_are_no_more_minibatches_than_episodes(write):
    lines = problems(write("x.yaml", MINIMAL + "rollout: {tasks_per_step: 2}\ntraining: {minibatches: 3}\n"))
    assert lines[1:] == [
        "x.yaml:5: training.minibatches: 3 is more than the 2 episodes of a step; set at most 2, or play more"
    ]


def test_a_file_that_does_not_exist_is_not_found():
    with pytest.raises(NotFound, match=r"no configuration 'gone\.yaml'"):
        load_config("gone.yaml")


def test_importing_the_configuration_loads_no_torch():
    code = "import sys, agentrl.config; print({'torch', 'transformers', 'gymnasium'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("overrides", "key", "problem"),
    [
        (["filters.accuracy_band=[0.1, 0.9]"], "filters.accuracy_band", "the rate of a group of 1 is 0 or 1"),
        (["filters.accuracy_band=[0.9, 0.1]", "rollout.group_size=2"], "filters.accuracy_band", "keeps no rate"),
        (["filters.accuracy_band=[0, 1]", "rollout.group_size=2"], "filters.accuracy_band", "no effect"),
        (["filters.repetition=1"], "filters.repetition", "no effect"),
        (["filters.overlong=true", "algorithm.drop_truncated=true"], "algorithm.drop_truncated", "no effect"),
    ],
)
def test_filters_without_effect_are_refused(overrides, key, problem, write):
    (line,) = problems(write("x.yaml", MINIMAL), *overrides)[1:]
    assert f"{key}: " in line
    assert problem in line


def test_filters_with_effect_are_taken(write):
    told = ["filters.accuracy_band=[0.05, 0.8]", "rollout.group_size=2", "filters.repetition=0.2"]
    filters = load_config(write("x.yaml", MINIMAL), told).config.filters
    assert (filters.accuracy_band, filters.repetition, filters.overlong) == ((0.05, 0.8), 0.2, False)


TREE = {"env": {"id": "agentrl/Guess-v0"}, "model": {"path": "m"}, "algorithm": {"name": "c_rf"}}


def test_a_configuration_needs_no_file(tmp_path):
    loaded = config_of(TREE, ["training.steps=7", "env.max_turns=3"], path=Path("m"), origin="the test")
    assert (loaded.config.training.steps, loaded.config.env.max_turns, loaded.path.stem) == (7, 3, "m")
    assert loaded.origins["model.path"] == "the test"
    assert loaded.origins["training.steps"] == "--set training.steps=7"
    assert loaded.origins["training.seed"] == "default"


def test_mistakes_in_values_without_a_file_say_where_they_are_from():
    with pytest.raises(ConfigError, match=r"the test: env\.prompt: no prompt 'x'"):
        config_of({**TREE, "env": {"id": "a", "prompt": "x"}}, path=Path("m"), origin="the test")
    with pytest.raises(
        ConfigError, match=r"--set env\.max_turn=3: env\.max_turn: unknown key\. Did you mean 'max_turns'"
    ):
        config_of(TREE, ["env.max_turn=3"], path=Path("m"), origin="the test")


class Shelf(Section):
    """A section with a mapping of sections in it."""

    books: dict[str, EnvConfig]


def test_a_section_is_read_from_a_file_and_its_mistakes_are_found_by_line(tmp_path):
    path = tmp_path / "shelf.yaml"
    path.write_text("books:\n  one: {id: a/B-v0}\n")
    assert read_section(Shelf, path).books["one"].id == "a/B-v0"
    path.write_text("books:\n  one:\n    id: a/B-v0\n    max_turn: 3\nbook: 4\n")
    with pytest.raises(ConfigError) as caught:
        read_section(Shelf, path)
    message = str(caught.value)
    assert "2 problems" in message
    assert f"{path}:4: books.one.max_turn: unknown key. Did you mean 'max_turns'?" in message
    assert f"{path}:5: book: unknown key. Did you mean 'books'?" in message


def test_autocast_without_effect_is_refused(write):
    path = write("x.yaml", MINIMAL)
    (line,) = problems(path, "training.autocast=true", "model.dtype=bfloat16")[1:]
    assert "training.autocast: no effect, model.dtype bfloat16 computes in it already; leave it out" in line
    assert load_config(path, ["training.autocast=true"]).config.training.autocast


def test_a_section_within_a_section_is_checked_like_any_other(write):
    path = write("x.yaml", MINIMAL)
    for override in ("model.lora={rank: 8, targets: [q_proj]}", "model.lora.rank=8"):
        lora = load_config(path, [override]).config.model.lora
        assert lora is not None
        assert (lora.rank, lora.alpha) == (8, 32)
        assert (lora.targets == ("q_proj",)) == ("targets" in override)
    assert "Did you mean 'rank'?" in problems(path, "model.lora={ranc: 8}")[1]
