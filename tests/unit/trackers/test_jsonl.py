import json
from pathlib import Path

from agentrl.trackers.jsonl import JSONL


def play(run_dir: Path, steps: range, resume_step: int | None = None, *, eval_every: int | None = None) -> None:
    """Logs as the trainer does: an evaluation comes before the step of its number, and again on resume."""
    tracker = JSONL(run_dir, {}, resume_step)
    for step in steps:
        if eval_every and step % eval_every == 0:
            tracker.log({"eval_in/success_rate": step / 7}, step=step)
        tracker.log({"rollout/episode_return": step / 3}, step=step)
    tracker.close()


def test_each_step_is_one_json_object_on_its_own_line(tmp_path: Path):
    play(tmp_path, range(2))
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 0, "rollout/episode_return": 0.0},
        {"step": 1, "rollout/episode_return": 1 / 3},
    ]


def test_a_line_is_on_disk_before_the_run_ends(tmp_path: Path):
    tracker = JSONL(tmp_path, {})
    tracker.log({"loss/policy": 1}, step=0)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 0, "loss/policy": 1.0}\n'
    tracker.close()


def test_a_resumed_file_equals_an_uninterrupted_one(tmp_path: Path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    play(whole, range(9), eval_every=3)
    play(broken, range(7), eval_every=3)  # the checkpoint is of 3 steps; steps 3 to 6 are lost and played again
    play(broken, range(3, 9), resume_step=3, eval_every=3)
    assert (broken / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_a_line_cut_short_by_a_crash_is_dropped_on_resume(tmp_path: Path):
    play(tmp_path, range(2))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "rollout/epi')
    play(tmp_path, range(2, 3), resume_step=2)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 2]
