from pathlib import Path

import pytest
import torch

from agentrl import assembly
from agentrl.config import load_config
from agentrl.errors import ConfigError
from agentrl.prompts import Prompt
from agentrl.trajectory import Turn
from tests.episodes import episode

CPU = torch.device("cpu")
PLAYED = [episode(0, [1, 2], episode_return=2.0), episode(1, [3], episode_return=-0.5)]


def rewards(tmp_path: Path, *overrides: str) -> list[list[float]]:
    """Gives what the turns of PLAYED are paid in a run with these settings."""
    path = tmp_path / "run.yaml"
    path.write_text("env: {id: agentrl/Guess-v0}\nmodel: {path: tiny}\nalgorithm: {name: c_rf}\n")
    score = assembly.scorer(load_config(str(path), overrides).config, device=CPU)
    return [[turn.reward for turn in one.turns] for one in score(PLAYED)]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Gives the name of a module with two reward functions."""
    (tmp_path / "judges.py").write_text(
        "def turns(played):\n    return [len(one.turns) for one in played]\n\n\n"
        "def first(played):\n    return [[4.0] + [0.0] * (len(one.turns) - 1) for one in played]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "judges"


def test_unless_a_configuration_says_otherwise_the_environment_pays(tmp_path: Path) -> None:
    assert rewards(tmp_path) == [[0.0, 2.0], [-0.5]]


def test_the_environments_reward_is_scaled_and_clipped_as_asked(tmp_path: Path) -> None:
    assert rewards(tmp_path, "reward.scale=0.5", "reward.clip=0.75") == [[0.0, 0.75], [-0.25]]


def test_a_function_pays_as_asked(tmp_path: Path, module: str) -> None:
    outcome = ("reward.source=function", f"reward.path={module}:turns")
    assert rewards(tmp_path, *outcome) == [[0.0, 2.0], [1.0]]
    assert rewards(tmp_path, *outcome, "reward.add=true", "reward.scale=10") == [[0.0, 2.0 + 20], [-0.5 + 10]]
    process = ("reward.source=function", f"reward.path={module}:first", "reward.per_turn=true", "reward.clip=3")
    assert rewards(tmp_path, *process) == [[3.0, 0.0], [3.0]]


def test_a_reward_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^reward\.path: cannot load 'runs/none/here'"):
        rewards(tmp_path, "reward.source=model", "reward.path=runs/none/here")


def prompted(tmp_path: Path, *overrides: str) -> Prompt:
    path = tmp_path / "run.yaml"
    path.write_text("env: {id: agentrl/Guess-v0}\nmodel: {path: tiny}\nalgorithm: {name: c_rf}\n")
    return assembly.prompt(load_config(str(path), overrides).config)


def test_a_window_is_as_long_as_the_prompt_or_the_configuration_says(tmp_path: Path) -> None:
    played = [Turn((), (), (), f"page {number}", f"<action>go {number}</action>") for number in range(5)]
    for setting, shown in (("null", [3, 4]), ("4", [1, 2, 3, 4])):
        prompt = prompted(tmp_path, "env.prompt=alfworld/step", f"env.window_turns={setting}")
        text = prompt.opening(played, "now", {"task": "t", "admissible_actions": ["look"]})[-1].content
        assert [number for number in range(5) if f"page {number}" in text] == shown


def test_a_prompt_that_keeps_everything_has_no_window(tmp_path: Path) -> None:
    for name in ("null", "alfworld/chat"):
        with pytest.raises(ConfigError, match="keeps the whole conversation; leave it out"):
            prompted(tmp_path, f"env.prompt={name}", "env.window_turns=3")
