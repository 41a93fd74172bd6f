from pathlib import Path

import pytest
import yaml

from agentrl import assembly, resources
from agentrl.config import load_config
from agentrl.errors import ConfigError, NotFound
from agentrl.evaluation.profiles import Named
from agentrl.evaluation.protocol import conditions
from agentrl.tasks import TaskSet

PROFILE = """\
source: "A paper of ours, section 3"
environments:
  agentrl/Guess-v0:
    max_turns: 3
    prompt: alfworld/step
    window_turns: 4
    eval_in: in_distribution
    temperature: 0.5
    top_p: 0.9
    max_tokens: 8
    context_tokens: 64
    samples: 2
"""
CONFIG = """\
env: {id: agentrl/Guess-v0, max_turns: 6, options: {}}
tasks: {eval_in: in_distribution, eval_out: out_of_distribution}
model: {path: tiny-alfworld}
algorithm: {name: c_rf}
"""
TASKS = TaskSet("in_distribution", ["1"], "0" * 64)


def profile(tmp_path: Path, text: str = PROFILE) -> Named:
    (tmp_path / "ours.yaml").write_text(text)
    return Named.load(str(tmp_path / "ours.yaml"))


def config_path(tmp_path: Path) -> str:
    (tmp_path / "run.yaml").write_text(CONFIG)
    return str(tmp_path / "run.yaml")


def test_a_profile_takes_the_place_of_the_configuration(tmp_path):
    config = profile(tmp_path).applied(load_config(config_path(tmp_path))).config
    assert (config.env.max_turns, config.env.prompt, config.env.window_turns) == (3, "alfworld/step", 4)
    assert (config.tasks.eval_in, config.tasks.eval_out) == ("in_distribution", None)
    assert (config.engine.max_tokens, config.engine.context_tokens) == (8, 64)
    assert assembly.prompt(config).window_turns == 4


def test_what_is_set_on_the_command_line_stays_and_is_stamped(tmp_path):
    ours = profile(tmp_path)
    config = ours.applied(load_config(config_path(tmp_path), ["env.max_turns=5", "engine.max_tokens=8"])).config
    assert (config.env.max_turns, config.engine.max_tokens) == (5, 8)
    sampling = {"temperature": 0.5, "top_p": 1.0}
    stamp = ours.stamp(conditions(config, TASKS, samples=4, sampling=sampling), num_tasks=len(TASKS))
    assert (stamp["name"], stamp["changed"]) == ("ours", ["max_turns", "samples", "top_p"])


def test_followed_to_the_letter_nothing_is_changed(tmp_path):
    ours = profile(tmp_path)
    config = ours.applied(load_config(config_path(tmp_path))).config
    sampling = {"temperature": 0.5, "top_p": 0.9}
    for how in (sampling, None):
        assert ours.stamp(conditions(config, TASKS, samples=2, sampling=how), num_tasks=len(TASKS))["changed"] == []
    other = TaskSet("out_of_distribution", ["3"], "1" * 64)
    assert ours.stamp(conditions(config, other, samples=2, sampling=sampling), num_tasks=1)["changed"] == ["split"]


def test_options_of_the_environment_are_the_profiles_but_for_where_the_files_are(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(
        CONFIG.replace("options: {}", "options: {games: generated, receptacles: [5, 6], data: here}")
        .replace("Guess", "ALFWorld")
        .replace("in_distribution", "valid_seen")
    )
    found = Named.load("gigpo").applied(load_config(str(config))).config.env.options
    assert found == {"games": "official", "data": "here"}
    found = Named.load("gigpo").applied(load_config(str(config), ["env.options.backend=textworld"])).config.env.options
    assert found == {"games": "official", "data": "here", "backend": "textworld"}


def test_the_hash_is_of_the_values(tmp_path):
    same = profile(tmp_path, "# a comment\n" + PROFILE.replace("max_turns: 3", "max_turns: 3  # steps"))
    assert same.sha256 == profile(tmp_path).sha256
    assert profile(tmp_path, PROFILE.replace("max_turns: 3", "max_turns: 4")).sha256 != same.sha256


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("source:", "sorce:", r"ours\.yaml:1: sorce: unknown key\. Did you mean 'source'\?"),
        ("max_turns", "max_turn", r"ours\.yaml:4: .*max_turn: unknown key\. Did you mean 'max_turns'\?"),
        ("samples: 2", "samples: 0", r"ours\.yaml:12: .*samples: input should be greater than 0, not 0"),
        ("top_p: 0.9", "top_p: 1.9", r"top_p: input should be less than or equal to 1, not 1\.9"),
        ("prompt: alfworld/step", "prompt: alfworld/stop", r"Did you mean 'alfworld/step'\?"),
        ("max_tokens: 8", "max_tokens: 64", "max_tokens: 64 leaves no room for a prompt in 64"),
        ("samples: 2", "metrics: [sucess_rate]", r"no 'sucess_rate'\. Did you mean 'success_rate'\?"),
        ("samples: 2", "samples: 2\n    samples: 3", "samples"),
    ],
)
def test_a_wrong_profile_is_refused_at_its_line(tmp_path, old, new, told):
    with pytest.raises(ConfigError, match=told):
        profile(tmp_path, PROFILE.replace(old, new, 1))


def test_an_environment_that_the_profile_does_not_know_is_refused(tmp_path):
    with pytest.raises(NotFound, match=r"says nothing about agentrl/Gues-v0\. Did you mean 'agentrl/Guess-v0'"):
        profile(tmp_path).protocol("agentrl/Gues-v0")


def test_an_unknown_profile_is_named_with_the_nearest():
    with pytest.raises(NotFound, match="Did you mean 'gigpo'"):
        Named.load("gigp")


SHIPPED = [(name, env_id) for name in resources.profile_names() for env_id in Named.load(name).profile.environments]


def test_the_four_papers_protocols_ship():
    assert {"gigpo", "hgpo", "crf", "react"} <= set(resources.profile_names())
    # field notes: steps, past turns, temperature, top-p and samples of each paper
    for name, alfworld in {
        "gigpo": (50, 2, 0.4, 1.0, 1),
        "hgpo": (50, 4, 0.4, 1.0, 3),
        "crf": (50, 2, 1.0, 0.7, 3),
        "react": (50, None, 0.0, 1.0, 1),
    }.items():
        one = Named.load(name).protocol("agentrl/ALFWorld-v0")
        assert (one.max_turns, one.window_turns, one.temperature, one.top_p, one.samples) == alfworld


@pytest.mark.parametrize(("name", "env_id"), SHIPPED)
def test_a_shipped_profile_fits_its_prompt(tmp_path, name, env_id):
    (tmp_path / "run.yaml").write_text(CONFIG.replace("agentrl/Guess-v0", env_id))
    config = Named.load(name).applied(load_config(str(tmp_path / "run.yaml"))).config
    assert assembly.prompt(config).history == ("window" if config.env.window_turns else "append")


@pytest.mark.data
@pytest.mark.parametrize(("name", "env_id"), SHIPPED)
def test_the_splits_of_a_shipped_profile_exist(name, env_id, data_dir, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTRL_DATA", str(data_dir))
    (tmp_path / "run.yaml").write_text(CONFIG.replace("agentrl/Guess-v0", env_id))
    config = Named.load(name).applied(load_config(str(tmp_path / "run.yaml"))).config
    for split in filter(None, (config.tasks.eval_in, config.tasks.eval_out)):
        assert len(assembly.task_set(config, split)) in (140, 134, 500, 120)


def test_every_shipped_profile_says_in_a_comment_what_it_is():
    for name in resources.profile_names():
        text = resources.profile_path(name).read_text()
        assert text.startswith("# ")
        assert len(yaml.safe_load(text)["source"]) > 20
