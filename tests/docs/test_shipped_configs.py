import re
from typing import Any

import pytest
import yaml

from agentrl import assembly, resources
from agentrl.config import RunConfig, load_config
from agentrl.prompts import Prompt

CONFIGS = resources.config_names()
TO_BE_MADE = {"alfworld/tiny_smollm2": "scripts/get_smollm2.py", "rlhf/reinforce_pp": "scripts/make_tiny_reward.py"}
"""Configurations whose model does not ship, and what makes it."""
ENVS = {"rlhf": "agentrl/Prompts-v0", "webshop": "agentrl/WebShop-v0", "zerotir": "agentrl/ZeroTIR-v0"}
"""What is played by the configurations of a folder; ALFWorld by the others."""

every_config = pytest.mark.parametrize("name", CONFIGS)


def comment(name: str) -> str:
    """The lines at the top of a configuration that say what it is."""
    lines = resources.config_path(name).read_text().splitlines()
    return " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))


def load(name: str) -> RunConfig[Any]:
    """A base leaves the algorithm to those that extend it."""
    return load_config(name, ["algorithm.name=c_rf"] if name.endswith("/base") else []).config


def needs_data(name: str) -> bool:
    """Whether its tasks are official games or sets of problems, which do not ship."""
    return bool({"official", "math"} & {value for value in options(name).values() if isinstance(value, str)})


def options(name: str) -> dict[str, Any]:
    """What the environment is made with."""
    return load(name).env.options


def test_there_are_configurations_and_one_is_the_quickstart():
    assert "quickstart" in CONFIGS
    assert len(CONFIGS) > 5


@every_config
def test_a_configuration_is_valid(name):
    assert load(name).env.id == ENVS.get(name.partition("/")[0], "agentrl/ALFWorld-v0")


def test_a_base_is_extended():
    extended = {yaml.safe_load(resources.config_path(name).read_text()).get("extends", "") for name in CONFIGS}
    for base in (name for name in CONFIGS if name.endswith("base")):
        assert extended & {base, f"{base.rpartition('/')[2]}.yaml"}, base


@every_config
def test_a_configuration_says_in_a_comment_what_it_is(name):
    assert len(comment(name)) > 20


@every_config
def test_the_model_ships_or_is_on_the_hub_or_the_comment_says_what_makes_it(name):
    path = load(name).model.path
    if name in TO_BE_MADE:
        assert TO_BE_MADE[name] in comment(name)
        assert (resources.ROOT / TO_BE_MADE[name]).is_file()
    elif "/" not in path:
        assert (resources.model_path(path) / "model.safetensors").is_file()
    else:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", path)
        assert not path.startswith("runs/")


@every_config
def test_the_prompt_is_a_shipped_one(name):
    config = load(name)
    if config.env.prompt:
        assert not config.env.prompt.endswith(".md")
        assert Prompt.load(resources.prompt_path(config.env.prompt)).turn


@pytest.mark.parametrize("name", [name for name in CONFIGS if not needs_data(name) and "path" not in options(name)])
def test_the_splits_of_generated_tasks_exist_and_have_their_roles(name):
    check_roles(load(name))


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in CONFIGS if needs_data(name)])
def test_the_splits_of_official_tasks_exist_and_have_their_roles(name, data_dir, monkeypatch):
    monkeypatch.setenv("AGENTRL_DATA", str(data_dir))
    check_roles(load(name))


def check_roles(config: RunConfig[Any]) -> None:
    roles = assembly.one_env(config).splits
    tasks = config.tasks
    asked = {"train": tasks.train, "in_distribution": tasks.eval_in, "out_of_distribution": tasks.eval_out}
    for role, split in asked.items():
        assert split is None or roles[split] == role
        assert split is None or len(assembly.task_set(config, split))


@every_config
def test_results_that_are_claimed_are_written_down_for_this_configuration(name):
    if "RESULTS.md" in comment(name):
        folder = resources.config_path(name).parent
        results = [
            file for file in (folder / "RESULTS.md", resources.ROOT / "configs" / "RESULTS.md") if file.is_file()
        ]
        assert any(name in file.read_text() for file in results)


FOR_AGENTS = ("react.md", "reflexion.md")
"""Prompts that `--agent` finds beside the configured one."""
PROMPTS = [path for path in sorted((resources.ROOT / "prompts").rglob("*.md")) if path.name not in FOR_AGENTS]


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_every_shipped_prompt_loads_and_is_used_by_a_configuration(path):
    assert Prompt.load(path).turn
    name = path.relative_to(resources.ROOT / "prompts").with_suffix("").as_posix()
    assert name in {load(config).env.prompt for config in CONFIGS}
