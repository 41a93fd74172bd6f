import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrl.errors import DataError, NotFound
from agentrl.report.summary import best_median_worst, read_metrics, read_rollouts, read_run
from agentrl.trajectory import Ending, Trajectory, Turn


def played(episode_return: float, num_turns: int = 1) -> Trajectory:
    rewards = [0.0] * (num_turns - 1) + [episode_return]
    turns = tuple(Turn((), (), (), "seen", "done", reward) for reward in rewards)
    return Trajectory("agentrl/Guess-v0", "guess-3", 0, 0, turns, Ending.TERMINATED)


def test_a_run_folder_is_read_whole(run_dir: Path):
    run = read_run(run_dir)
    assert run.name == "2026-11-30_014107_alfworld_grpo_s0"
    assert run.num_steps == 60
    assert [file.step for file in run.rollout_files] == [0, 59]
    assert [evaluation.step for evaluation in run.evaluations_of("in_distribution")] == [0, 30, 60]
    assert run.evaluations_of("in_distribution")[0].by_type["pick_and_place"].num_episodes == 28
    assert run.setting("training.learning_rate") == 1e-6  # PyYAML alone would read a string
    assert run.setting("training.unheard_of", "nothing") == "nothing"
    assert run.origins["algorithm.clip_low"] == "default"
    assert run.environment["commit"] == "1a2b3c4d5e6f"


def test_an_empty_folder_is_a_run_that_has_not_written_yet(tmp_path: Path):
    run = read_run(tmp_path)
    assert (run.num_steps, run.total_s, run.metrics, run.evaluations, run.rollout_files) == (0, 0.0, {}, (), ())


def test_a_folder_that_does_not_exist_is_not_found(tmp_path: Path):
    with pytest.raises(NotFound, match="no such run folder"):
        read_run(tmp_path / "nothing")


def test_the_newest_checkpoint_gives_the_tokenizer(make_run: Callable[..., Path]):
    run_dir = make_run(tokenizer=True)
    older = run_dir / "checkpoints/step_000030"
    older.mkdir()
    (older / "tokenizer.json").touch()
    assert read_run(run_dir).tokenizer == run_dir / "checkpoints/step_000060/tokenizer.json"


def test_lines_of_the_same_step_are_one_point(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "a": 1.0, "b": 5.0}\n{"step": 0, "a": 7.0}\n{"step": 1, "a": 2.0}\n')
    assert read_metrics(path) == {"a": ((0, 7.0), (1, 2.0)), "b": ((1, 5.0),)}


def test_a_line_that_is_still_being_written_is_left_alone(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "a": 7.0}\n{"step": 1, "a"')
    assert read_metrics(path) == {"a": ((0, 7.0),)}


def test_a_damaged_line_is_named_by_its_number(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "a": 7.0}\nhello\n')
    with pytest.raises(DataError, match=r"metrics\.jsonl:2"):
        read_metrics(path)


def test_of_two_evaluations_of_one_step_the_larger_counts(run_dir: Path):
    small = json.loads((run_dir / "eval/step_000060_in.json").read_text()) | {"num_episodes": 20, "success_rate": 0.0}
    (run_dir / "eval/step_000060_valid_seen.json").write_text(json.dumps(small))
    assert [found.num_episodes for found in read_run(run_dir).evaluations_of("in_distribution")] == [140, 140, 140]


def test_supervised_training_counts_its_own_steps(run_dir: Path):
    (run_dir / "metrics.jsonl").write_text('{"step": 1, "sft/loss": 2.0}\n')
    (run_dir / "config.yaml").write_text("algorithm: {name: grpo}\ntraining: {steps: 60}\nsft: {steps: 300}\n")
    run = read_run(run_dir)
    assert (run.method, run.num_steps, run.planned_steps) == ("sft", 1, 300)


def test_a_file_that_is_no_evaluation_is_named(run_dir: Path):
    (run_dir / "eval/step_000061_in.json").write_text(json.dumps({"success_rate": 1.0}))
    with pytest.raises(DataError, match=r"step_000061_in\.json: not an evaluation"):
        read_run(run_dir)


def test_rollouts_come_back_as_they_were_written(tmp_path: Path):
    path = tmp_path / "step_000003.jsonl"
    path.write_text("".join(json.dumps(played(value).to_dict()) + "\n" for value in (0.0, 1.0)))
    assert list(read_rollouts(path)) == [played(0.0), played(1.0)]


def test_a_line_that_is_no_trajectory_is_named_by_its_number(tmp_path: Path):
    path = tmp_path / "step_000003.jsonl"
    path.write_text(json.dumps(played(1.0).to_dict()) + '\n{"turns": []}\n')
    with pytest.raises(DataError, match=r"jsonl:2: not a trajectory"):
        list(read_rollouts(path))


def test_of_equal_returns_the_shorter_episode_is_better():
    chosen = best_median_worst([played(0.0), played(1.0, 5), played(1.0, 2)])
    assert chosen == {"best": played(1.0, 2), "median": played(1.0, 5), "worst": played(0.0)}


@pytest.mark.parametrize(("count", "names"), [(0, []), (1, ["best"]), (2, ["best", "worst"])])
def test_of_few_episodes_each_is_shown_once(count: int, names: list[str]):
    assert list(best_median_worst([played(float(-i)) for i in range(count)])) == names
