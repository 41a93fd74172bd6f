"""Prompting agents over the tiny shipped policy: it cannot follow a prompt, but every part of the loop has to run."""

import json
from pathlib import Path

import pytest

from agentrl.cli.main import main
from agentrl.report.summary import read_rollouts

GENERATED = (
    *("env.options.games=generated", "env.prompt=alfworld/step", "env.max_turns=3", "tasks.eval_in=in_distribution"),
    *("tasks.eval_out=null", "rollout.concurrency=4"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_react_plays_alfworld(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["eval", "alfworld/tiny_real", "--agent", "react", "--limit", "4", "--json", "--set", *GENERATED]
    assert main(arguments) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["policy"] == "tiny-alfworld-real, react"
    assert (found["num_episodes"], found["mean_turns"]) == (4, 3.0)


def test_reflexion_plays_alfworld_in_trials_that_differ(folder: Path) -> None:
    arguments = [
        "rollout",
        "alfworld/tiny_real",
        "--agent",
        "reflexion",
        "--trials",
        "3",
        "-n",
        "4",
        "--out",
        "played.jsonl",
    ]
    assert main([*arguments, "--set", *GENERATED, "engine.max_tokens=24"]) == 0
    played = list(read_rollouts(folder / "played.jsonl"))
    assert len(played) == 4
    for trajectory in played:
        assert trajectory.success or trajectory.info["trials"] == 3
        assert len(trajectory.info["reflections"]) == trajectory.info["trials"] - 1
        sampled = sum(len(turn.action_ids) for turn in trajectory.turns)
        assert trajectory.info["usage"]["action_tokens"] > sampled  # the other trials and the reflections cost, too
