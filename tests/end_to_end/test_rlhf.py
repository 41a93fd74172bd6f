"""RLHF on a CPU: scripts/make_tiny_reward.py makes what configs/rlhf/reinforce_pp.yaml trains with."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agentrl import assembly, resources
from agentrl.config import load_config
from agentrl.report.summary import read_rollouts
from agentrl.trajectory import Trajectory
from tests.unit.cli.command import Command

CONFIG = "rlhf/reinforce_pp"
SCRIPTS = resources.ROOT / "scripts"


@pytest.fixture
def agentrl(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Gives the script as a module."""
    monkeypatch.syspath_prepend(SCRIPTS)
    import make_tiny_reward  # pyright: ignore[reportMissingImports]

    return make_tiny_reward


def test_what_the_script_has_not_made_yet_is_missed_before_anything_is_made(agentrl: Command) -> None:
    told = agentrl.fails("train", CONFIG)
    assert told == "agentrl: runs/tiny_reward/prompts.jsonl: no such file of prompts; " + (
        "correct the option path, or make the file"
    )
    assert not Path("runs").exists()


@pytest.mark.slow
def test_the_reward_rises_and_with_it_what_the_reward_model_was_taught(agentrl: Command, script: ModuleType) -> None:
    make = [sys.executable, str(SCRIPTS / "make_tiny_reward.py"), "runs/tiny_reward", "--steps", "120"]
    made = subprocess.run(make, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("runs/tiny_reward: 24 prompts, a policy, and a reward model that agrees with ")
    config = load_config(CONFIG).config
    assert dict(assembly.one_env(config).splits)["train"] == "train"
    agentrl("train", CONFIG, "--set", "training.steps=25", "logging.rollouts_every=24")

    run = Path("runs/latest")
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    returns = [line["rollout/episode_return"] for line in metrics]
    assert sum(returns[-5:]) / 5 - sum(returns[:5]) / 5 > 0.2
    assert all(abs(value) <= 1 for value in returns)  # reward.clip
    raw = [line["rollout/raw_return"] for line in metrics]
    assert returns[0] == pytest.approx(0.3 * raw[0], abs=0.02)  # reward.scale; few are clipped at first
    assert {line["rollout/reward_truncated_frac"] for line in metrics} == {0.0}

    kinds = dict(script.prompts())

    def mean_quality(played: list[Trajectory]) -> float:
        """Gives the mean of words asked for minus other words: the truth behind the preferences."""
        turns = [one.turns[0] for one in played]
        return sum(script.quality(kinds[turn.observation], turn.action.split()) for turn in turns) / len(turns)

    first, last = (list(read_rollouts(path)) for path in sorted((run / "rollouts").iterdir()))
    assert mean_quality(last) > mean_quality(first) + 1
