"""Evaluations as a user makes them: interrupted, repeated, compared, of a model without a configuration."""

import json
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.unit.cli.command import Command, write_guess_config

FUSED = """\
import os
import signal
from pathlib import Path

import gymnasium

from agentrl_envs.guess import Guess

LEFT = [7]


class Fused(Guess):
    def reset(self, *, seed=None, options=None):
        if Path("fuse").exists():
            LEFT[0] -= 1
            if LEFT[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().reset(seed=seed, options=options)


gymnasium.register("me/Fused-v0", entry_point=Fused, max_episode_steps=6)
"""
"""An environment that kills its process at the seventh episode, as long as there is a file `fuse`."""


@pytest.fixture
def agentrl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_model_dir: Path
) -> Command:
    write_guess_config(tmp_path, tiny_model_dir)
    return Command(tmp_path, capsys, monkeypatch)


@pytest.mark.slow
def test_an_evaluation_that_is_killed_goes_on_to_the_same_bytes(agentrl):
    Path("fused.py").write_text(FUSED)
    Path("fused.yaml").write_text(Path("guess.yaml").read_text().replace("agentrl/Guess-v0", '"fused:me/Fused-v0"'))
    arguments = ["eval", "fused.yaml", "--split", "in", "--samples", "3", "--set", "rollout.concurrency=2"]
    command = [sys.executable, "-m", "agentrl", *arguments]
    subprocess.run([*command, "--out", "whole.json"], check=True, capture_output=True)
    Path("fuse").touch()
    killed = subprocess.run([*command, "--out", "parts.json"], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert not Path("parts.json").exists()
    kept = Path("parts.episodes.jsonl").read_text().splitlines()[1:]
    assert 1 <= len(kept) < 24
    Path("fuse").unlink()
    again = subprocess.run([*command, "--out", "parts.json"], check=True, capture_output=True, text=True)
    assert f"{len(kept)} of 24 episodes were there" in again.stdout
    assert Path("parts.json").read_bytes() == Path("whole.json").read_bytes()


def test_how_many_episodes_are_played_at_a_time_does_not_change_a_byte(agentrl):
    for at_a_time in (1, 64):
        settings = ("--set", f"rollout.concurrency={at_a_time}", "--out", f"{at_a_time}.json", "--top-p", "0.8")
        agentrl("eval", "guess.yaml", "--split", "in", "--samples", "4", *settings)
    assert Path("1.json").read_bytes() == Path("64.json").read_bytes()


def test_a_repeated_evaluation_plays_nothing_and_other_settings_are_refused(agentrl):
    arguments = ("eval", "guess.yaml", "--split", "in", "--samples", "2", "--out", "x.json")
    agentrl(*arguments)
    first = Path("x.json").read_bytes()
    assert "16 of 16 episodes were there" in agentrl(*arguments)
    assert Path("x.json").read_bytes() == first
    for change, told in (
        (("--seed", "5"), "seed 0 there, 5 here"),
        (("--temperature", "0.5"), "temperature 1.0 there, 0.5 here"),
        (("--limit", "3"), "num_tasks 8 there, 3 here; manifest_sha256"),
        (("--set", "model.path=tiny-alfworld"), "weights 'sha256:"),
        (("--set", "env.max_turns=4"), "max_turns 6 there, 4 here"),
    ):
        assert told in agentrl.fails(*arguments, *change)
    assert "were there" not in agentrl(*arguments, "--seed", "5", "--fresh")
    assert json.loads(Path("x.json").read_text())["seed"] == 5


def test_a_checkpoint_and_a_model_are_evaluated_without_a_configuration(agentrl, tiny_model_dir):
    agentrl("train", "guess.yaml", "--set", "logging.eval_every=null")
    checkpoint = Path("runs/latest/checkpoints/step_000002").resolve()
    (of_run,) = json.loads(agentrl("eval", str(checkpoint), "--split", "out", "--json"))
    small = ("--set", "engine={max_tokens: 4, context_tokens: 256}", "--split", "out_of_distribution", "--json")
    (alone,) = json.loads(agentrl("eval", str(checkpoint), "--env", "agentrl/Guess-v0", *small))
    assert of_run["tasks"] == [
        {**one, "policy_version": of_run["tasks"][0]["policy_version"]} for one in alone["tasks"]
    ]
    assert of_run["step"] == 2
    assert "is one itself" in agentrl.fails("eval", str(checkpoint), "--checkpoint", "1")
    told = agentrl("eval", "tiny-alfworld", "--env", "agentrl/ALFWorld-v0", "--limit", "1", *small[:2])
    assert "in_distribution" in told
    assert Path("eval_tiny-alfworld_in_distribution_first1.json").is_file()
    assert "say what it plays" in agentrl.fails("eval", "tiny-alfworld")
    assert "leave it out" in agentrl.fails("eval", "guess.yaml", "--env", "agentrl/Guess-v0")
    assert "says which environment" in agentrl.fails("eval", "runs/latest", "--env", "agentrl/Guess-v0")
    assert "no model 'tiny-alfwrld'" in agentrl.fails("eval", "tiny-alfwrld", "--env", "agentrl/Guess-v0")


def test_a_profile_decides_and_is_stamped(agentrl):
    Path("ours.yaml").write_text(
        'source: "A paper of ours, section 3"\nenvironments:\n  agentrl/Guess-v0: {max_turns: 3, prompt: bare.md, '
        "eval_in: in_distribution, temperature: 0, max_tokens: 4, context_tokens: 128, samples: 2, "
        "metrics: [avg@2, success_rate, score]}\n"
    )
    Path("bare.md").write_text("## turn\n{observation}\n")
    told = agentrl("eval", "guess.yaml", "--profile", "ours.yaml")
    assert "as ours reports it: A paper of ours, section 3" in told
    found = json.loads(next(Path().glob("eval_guess_in_distribution_*_ours_k2.json")).read_text())
    assert (found["samples"], found["protocol"]["max_turns"], found["protocol"]["temperature"]) == (2, 3, 0)
    assert found["protocol"]["profile"]["changed"] == []
    assert found["protocol"]["prompt"] == "bare.md"
    assert all(one["turns"] <= 3 for one in found["tasks"])
    told = agentrl("eval", "guess.yaml", "--profile", "ours.yaml", "--samples", "1", "--split", "in")
    assert "not as the profile says: samples" in told


def test_two_results_are_compared_in_a_sentence(agentrl):
    for policy in ("random", "expert"):
        arguments = ("--split", "train", "--samples", "4", "--out", f"{policy}.json")
        agentrl("eval", "guess.yaml", "--policy", policy, *arguments)
    told = agentrl("compare", "random.json", "expert.json")
    assert "The data support that B's success is higher" in told
    (found,) = json.loads(agentrl("compare", "random.json", "expert.json", "--json"))
    assert found["difference"] == pytest.approx(1 - found["means"][0])
    assert found["num_tasks"] == 8
    assert not found["lost"]
    turns = agentrl("compare", "random.json", "expert.json", "--metric", "turns")
    assert {"higher", "lower"} <= set(turns.split())
    assert not {"gained", "lost"} & set(turns.split())
    assert "No task changed" in agentrl("compare", "expert.json", "expert.json")
    agentrl("eval", "guess.yaml", "--policy", "expert", "--split", "train", "--limit", "5", "--out", "five.json")
    refused = agentrl.fails("compare", "expert.json", "five.json")
    assert "ignore it with --force num_tasks manifest_sha256" in refused
    forced = agentrl("compare", "expert.json", "five.json", "--force", "num_tasks", "manifest_sha256")
    assert "train, 5 tasks, success" in forced
    assert "ignored  num_tasks: 8 and 5" in forced


def test_the_last_evaluations_of_two_runs_are_compared(agentrl):
    for seed in ("0", "1"):
        agentrl("train", "guess.yaml", "--set", f"training.seed={seed}", f"logging.run_dir=seed{seed}")
    told = agentrl("compare", "seed0/latest", "seed1/latest")
    assert "in_distribution, 8 tasks, success" in told
    assert "out_of_distribution, 2 tasks, success" in told
    assert "step_000002_in.json" in told
    by_hand = ("eval", "seed0/latest", "--split", "in", "--out", "by_hand.json")
    agentrl(*by_hand)
    assert "No task changed" in agentrl("compare", "seed0/latest/eval/step_000002_in.json", "by_hand.json")


@pytest.mark.data
@pytest.mark.slow
def test_one_missing_game_fails_an_evaluation_and_the_manifest_does_not_depend_on_the_place(
    agentrl, data_dir, monkeypatch
):
    monkeypatch.setenv("HOME", str(Path.cwd()))  # where indexes are kept
    with tarfile.open(next((data_dir / "alfworld").glob("*.tar.xz"))) as archive:
        members = [one for one in archive.getmembers() if "/valid_unseen/" in one.name and one.isfile()]
        archive.extractall("here", members, filter="data")
    games = sorted(Path("here").rglob("game.tw-pddl"))
    for game in reversed(games):
        target = Path("elsewhere/deeper") / game.relative_to("here")
        target.parent.mkdir(parents=True)
        target.write_bytes(game.read_bytes())
    arguments = ("eval", "tiny-alfworld", "--env", "agentrl/ALFWorld-v0", "--policy", "random")
    arguments += ("--split", "valid_unseen")
    found: list[tuple[str, int]] = []
    for place in ("here", "elsewhere/deeper"):
        options = f"env.options={{games: official, data: {place}}}"
        told = agentrl(*arguments, "--set", options, "env.max_turns=1", "--json", "--fresh")
        found += [(one["manifest_sha256"], one["num_tasks"]) for one in json.loads(told)]
    assert found == [found[0]] * 2
    assert found[0][1] == 134
    games[77].unlink()
    again = Path("here").resolve()  # another name: a process keeps what it has opened
    refused = agentrl.fails(*arguments, "--set", f"env.options={{games: official, data: {again}}}")
    assert "of the 134 games of valid_unseen, 1 are missing" in refused
    assert "/".join(games[77].parent.parts[-3:]) in refused
