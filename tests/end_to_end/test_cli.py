"""The command line as a user meets it, on agentrl/Guess-v0 and a model of two layers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from agentrl.report.summary import read_rollouts
from tests.unit.cli.command import Command, write_guess_config


@pytest.fixture
def agentrl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_model_dir: Path
) -> Command:
    """Gives the command in a folder with guess.yaml, which trains a tiny model."""
    write_guess_config(tmp_path, tiny_model_dir)
    return Command(tmp_path, capsys, monkeypatch)


@pytest.fixture
def run(agentrl: Command) -> Path:
    """Gives the folder of a run of two steps."""
    agentrl("train", "guess.yaml")
    return Path("runs/latest")


def measured(run: Path) -> list[dict[str, Any]]:
    """Gives the lines of metrics.jsonl without what depends on the clock."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in line.items() if not key.startswith("time/") and not key.endswith("_per_s")}
        for line in lines
    ]


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Starts `agentrl` in a process of its own, which hears Ctrl-C even where the tests run in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "agentrl", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        preexec_fn=_hear_interrupts,
    )


def test_training_tells_what_it_does_and_where_the_results_are(agentrl):
    lines = agentrl("train", "guess.yaml").splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["agentrl", "policy", "env", "algorithm", "evals"]
    assert lines[2].startswith("  env        agentrl/Guess-v0, at most 6 turns")
    assert "A_i = (R_i - mean of its group)" in lines[3]
    assert lines[4] == "  evals      in_distribution (8 tasks) · out_of_distribution (2 tasks), every 1 steps"
    assert any(line.startswith("  eval in-distribution ") and " -> " in line for line in lines)
    report = Path(lines[-2].removeprefix("Report  "))
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert lines[-1].startswith("Next    agentrl view ")


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(agentrl):
    agentrl("train", "guess.yaml", "--set", "logging.run_dir=whole", "--steps", "3")
    agentrl("train", "guess.yaml", "--set", "logging.run_dir=parts", "--steps", "2")
    agentrl("train", "--resume", "parts/latest", "--steps", "3")
    whole, parts = Path("whole/latest"), Path("parts/latest")
    for name in ("model.safetensors", "optimizer.pt", "state.json"):
        file = Path("checkpoints", "step_000003", name)
        assert (whole / file).read_bytes() == (parts / file).read_bytes(), name
    assert measured(whole) == measured(parts)
    assert "  steps: 3\n" in (parts / "config.yaml").read_text()


def test_a_run_that_goes_on_keeps_its_settings(agentrl, run):
    assert "all but training.steps" in agentrl.fails("train", "--resume", str(run), "--set", "training.seed=2")
    assert "has done 2; ask for more" in agentrl.fails("train", "--resume", str(run), "--steps", "1")
    assert "leave out CONFIG" in agentrl.fails("train", "guess.yaml", "--resume", str(run))
    assert "not a run folder" in agentrl.fails("train", "--resume", "elsewhere")


def test_a_dry_run_learns_a_step_and_keeps_nothing(agentrl):
    before = set(Path().iterdir())
    told = agentrl("train", "guess.yaml", "--dry-run")
    assert "Dry run: 8 episodes and an update in " in told
    assert "in_distribution (8 tasks)" in told
    assert set(Path().iterdir()) == before


def test_nothing_is_made_when_a_part_of_the_run_is_missing(agentrl):
    for setting, problem in (
        ("tasks.eval_out=unseen", "no split 'unseen'"),
        ("model.path=nope", "no model 'nope'"),
        ("env.id=agentrl/Gues-v0", "Did you mean: `Guess`?"),
        ("training.stesp=3", "Did you mean 'steps'?"),
        ("reward={source: function, path: 'nowhere:judge'}", "reward.path: cannot import nowhere:judge"),
        ("reward={source: model, path: nowhere}", "reward.path: no folder 'nowhere'"),
    ):
        assert problem in agentrl.fails("train", "guess.yaml", "--set", setting)
    assert not Path("runs").exists()
    assert "name a configuration" in agentrl.fails("train")


def test_cloning_gives_a_checkpoint_that_training_starts_from(agentrl):
    told = agentrl("sft", "guess.yaml", "--set", "sft={demonstrations: 16, steps: 3, batch_tokens: 256}")
    assert "  sft     16 demonstrations · 3 steps" in told
    checkpoint = told.rstrip().rpartition("model.path=")[2]
    assert Path(checkpoint, "model.safetensors").is_file()
    agentrl("train", "guess.yaml", "--set", f"model.path={checkpoint}", "training.steps=1")


def test_cloning_without_its_section_is_a_mistake(agentrl):
    assert "sft: there is no such section" in agentrl.fails("sft", "guess.yaml")


def test_a_run_is_evaluated_at_its_newest_checkpoint(agentrl, run):
    told = agentrl("eval", str(run), "--samples", "2")
    assert "in_distribution" in told
    assert "step 2" in told
    found = json.loads((run / "eval/extra/step_000002_in_distribution_k2.json").read_text())
    assert (found["num_episodes"], found["num_tasks"], found["role"]) == (16, 8, "in_distribution")
    first = json.loads(agentrl("eval", str(run), "--checkpoint", "1", "--split", "out", "--json"))
    assert (first[0]["step"], first[0]["split"]) == (1, "out_of_distribution")
    assert "there are: step_000001, step_000002" in agentrl.fails("eval", str(run), "--checkpoint", "7")


def test_an_evaluation_by_hand_gives_what_training_measured_and_leaves_its_report_alone(agentrl, run):
    (found,) = json.loads(agentrl("eval", str(run), "--split", "in", "--json"))
    own = json.loads((run / "eval/step_000002_in.json").read_text())
    assert found["tasks"] == own["tasks"]
    assert len(list((run / "eval").glob("*.json"))) == 6  # two splits, before each step and after the last


def test_the_expert_always_finds_the_digit_and_a_random_player_rarely(agentrl):
    arguments = ("eval", "guess.yaml", "--split", "train", "--samples", "8", "--json", "--policy")
    (expert,), (random) = json.loads(agentrl(*arguments, "expert")), json.loads(agentrl(*arguments, "random"))[0]
    assert expert["success_rate"] == 1
    # six guesses with replacement find one of ten digits with probability 1 - 0.9^6 = 0.47
    assert random["ci95"][0] < 1 - 0.9**6 < random["ci95"][1]
    assert Path("eval_guess_train_expert_k8.json").is_file()


def test_evaluations_are_written_where_asked(agentrl):
    agentrl("eval", "guess.yaml", "--policy", "random", "--split", "out", "--limit", "1", "--out", "x/one.json")
    assert json.loads(Path("x/one.json").read_text())["num_tasks"] == 1
    agentrl("eval", "guess.yaml", "--policy", "random", "--out", "both.json")
    assert sorted(path.name for path in Path().glob("both_*.json")) == [
        "both_in_distribution.json",
        "both_out_of_distribution.json",
    ]


def test_evaluation_refuses_what_it_cannot_do(agentrl):
    assert "no split 'unseen'" in agentrl.fails("eval", "guess.yaml", "--split", "unseen")
    assert "--noise: no effect without --policy expert" in agentrl.fails(
        "eval", "guess.yaml", "--policy", "random", "--noise", "0.2"
    )
    unset = agentrl.fails("eval", "guess.yaml", "--split", "in", "--set", "tasks.eval_in=null")
    assert "tasks.eval_in not set" in unset


def test_rollouts_are_kept_and_can_be_read(agentrl, run):
    told = agentrl("rollout", str(run), "-n", "5", "--out", "played.jsonl.gz")
    assert told.startswith("  played   5 episodes of agentrl/Guess-v0 train by step 2 in ")
    played = list(read_rollouts(Path("played.jsonl.gz")))
    assert len({trajectory.task_id for trajectory in played}) == 5
    assert all(turn.action_ids for trajectory in played for turn in trajectory.turns)
    shown = agentrl("view", "played.jsonl.gz", "--pick", "worst")
    assert "1 of 5 trajectories" in shown
    assert "I think of a digit." in shown


def test_a_prompt_that_is_greedy_plays_the_same_with_any_seed(agentrl, run):
    for seed in ("0", "1"):
        agentrl("rollout", str(run), "-n", "8", "--temperature", "0", "--seed", seed, "--out", f"{seed}.jsonl")
    texts = [
        {one.task_id: [turn.action for turn in one.turns] for one in read_rollouts(Path(f"{seed}.jsonl"))}
        for seed in "01"
    ]
    assert texts[0] == texts[1]


def test_view_shows_the_steps_that_were_kept(agentrl, run):
    assert "step_000001" in agentrl("view", str(run)).splitlines()[0]
    assert "step_000000" in agentrl("view", str(run), "--step", "0", "--limit", "1").splitlines()[0]
    assert "it has those of steps: 0, 1" in agentrl.fails("view", str(run), "--step", "7")


def test_several_runs_are_reported_side_by_side(agentrl, run):
    agentrl("train", "guess.yaml", "--set", "training.seed=1")
    runs = sorted(str(path) for path in Path("runs").iterdir() if not path.is_symlink())
    told = agentrl("report", *runs)
    assert "| guess | agentrl/Guess-v0 | grpo | 2 |" in told
    assert Path("comparison.html").is_file()
    Path("empty").mkdir()
    assert "not a run folder" in agentrl.fails("report", "empty")


def test_an_environment_of_the_working_folder_is_played_and_trained_in(agentrl):
    agentrl("envs", "new", "counting")
    settings = ("env.id=counting:me/Counting-v0", "tasks.eval_in=null", "tasks.eval_out=test", "training.steps=1")
    assert "out_of_distribution" not in agentrl("train", "guess.yaml", "--set", *settings).splitlines()[4]


def test_control_c_ends_quietly():
    with start("play", "agentrl/Guess-v0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "")


def test_a_reader_that_has_enough_ends_the_output_quietly(agentrl):
    agentrl("rollout", "guess.yaml", "--policy", "expert", "-n", "900", "--out", "many.jsonl")
    with start("view", "many.jsonl", "--limit", "900") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.slow
def test_another_process_prints_plain_text_and_nothing_on_standard_error(agentrl):
    with start("train", "guess.yaml", "--steps", "1") as process:
        output, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, "")
    assert "\x1b" not in output


def test_a_run_that_plays_ahead_evaluates_saves_and_goes_on(agentrl):
    agentrl("train", "guess.yaml", "--steps", "3", "--set", "rollout.max_staleness=1")
    run = Path("runs/latest")
    agentrl("train", "--resume", "runs/latest", "--steps", "5")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    staleness = [line["rollout/staleness_max"] for line in lines if "rollout/staleness_max" in line]
    assert len(staleness) == 5
    assert staleness[0] == staleness[3] == 0  # nothing could be played before a run starts, or goes on
    assert max(staleness) <= 1
    assert any("eval_in/success_rate" in line for line in lines)
    assert (run / "checkpoints" / "step_000005" / "model.safetensors").is_file()


def test_adapters_are_trained_saved_resumed_and_evaluated(agentrl):
    pytest.importorskip("peft")
    lora = ("--set", "model.lora={rank: 4, alpha: 4}", "training.learning_rate=1e-2")
    agentrl("train", "guess.yaml", "--steps", "3", *lora, "logging.run_dir=whole")
    agentrl("train", "guess.yaml", "--steps", "2", *lora, "logging.run_dir=parts")
    agentrl("train", "--resume", "parts/latest", "--steps", "3")
    assert measured(Path("whole/latest")) == measured(Path("parts/latest"))
    folder = Path("parts/latest/checkpoints/step_000003")
    assert (folder / "adapter_model.safetensors").is_file()
    assert not (folder / "model.safetensors").exists()
    assert measured(Path("parts/latest"))[-1]["eval_in/success_rate"] >= 0
    assert "in_distribution" in agentrl("eval", "parts/latest", "--split", "all")
    (by_step,) = json.loads(agentrl("eval", "parts/latest", "--checkpoint", "3", "--split", "out", "--json"))
    (by_folder,) = json.loads(agentrl("eval", str(folder), "--split", "out", "--json"))
    small = ("--set", "engine={max_tokens: 4, context_tokens: 256}", "--split", "out_of_distribution", "--json")
    (alone,) = json.loads(agentrl("eval", str(folder), "--env", "agentrl/Guess-v0", *small))
    assert by_step["tasks"] == by_folder["tasks"]
    assert alone["num_episodes"] == by_step["num_episodes"]


@pytest.mark.slow
def test_two_processes_train_evaluate_and_save_one_run(agentrl):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "agentrl"]
    environ = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    settings = ["--steps", "3", "--set", "rollout.tasks_per_step=4", "logging.run_dir=two"]
    done = subprocess.run(
        [sys.executable, *torchrun, "train", "guess.yaml", *settings], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    agentrl("train", "guess.yaml", *settings[:-1], "logging.run_dir=one")
    (run,) = (path for path in Path("two").iterdir() if not path.is_symlink())
    ours, theirs = measured(Path("one/latest")), measured(run)
    assert len(ours) == len(theirs) > 3
    for line, other in zip(ours, theirs, strict=True):
        assert line == pytest.approx(other, rel=1e-3, abs=1e-5)
    one, two = (load_file(path / "checkpoints/step_000003/model.safetensors") for path in (Path("one/latest"), run))
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=0, atol=1e-5)
