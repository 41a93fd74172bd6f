"""The command line in this process: what it prints, and what it says when it fails."""

import logging
import sys
from pathlib import Path

import pytest

from agentrl.cli.main import main

GUESS = """\
env: {{id: agentrl/Guess-v0}}
tasks: {{eval_in: in_distribution, eval_out: out_of_distribution}}
model: {{path: {model}}}
engine: {{max_tokens: 4, context_tokens: 256}}
rollout: {{tasks_per_step: 2, group_size: 4}}
algorithm: {{name: grpo}}
training: {{steps: 2, learning_rate: 1e-3}}
logging: {{eval_every: 1, save_every: 1, rollouts_every: 1}}
"""


class Command:
    """Calls `agentrl` from a folder of its own; what it changes of the process is undone after the test."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "path", [*sys.path])
        for package in ("agentrl", "agentrl_envs"):
            monkeypatch.setattr(logging.getLogger(package), "handlers", [])
        self._capsys = capsys

    def __call__(self, *arguments: str) -> str:
        """Gives what it prints; it must succeed."""
        code = main(arguments)
        printed = self._capsys.readouterr()
        assert code == 0, printed.err
        return printed.out

    def fails(self, *arguments: str) -> str:
        """Gives what it says of a user's mistake: the message alone, on standard error, with exit code 2."""
        code = main(arguments)
        printed = self._capsys.readouterr()
        assert (code, printed.out) == (2, "")
        assert "Traceback" not in printed.err
        return printed.err.rstrip("\n")


def write_guess_config(folder: Path, model: Path | str) -> Path:
    """Writes a configuration that trains `model` on agentrl/Guess-v0 for two steps of eight episodes."""
    path = folder / "guess.yaml"
    path.write_text(GUESS.format(model=model), encoding="utf-8")
    return path
