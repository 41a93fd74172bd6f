from pathlib import Path

import pytest

from agentrl.errors import NotFound
from agentrl.report.view import render_rollouts, render_trajectory
from agentrl.trajectory import Ending, Trajectory, Turn

GUESS = Trajectory(
    env_id="agentrl/Guess-v0",
    task_id="guess-7",
    seed=3,
    group=0,
    turns=(
        Turn(
            (1,),
            (11, 2),
            (-0.5, -0.25),
            "I think of a digit.\nAnswer with one digit.",
            "4",
            info={"inadmissible": True},
        ),
        Turn((1,), (12,), (-1.0,), "higher", "7", reward=1.0, stopped="length"),
    ),
    ending=Ending.TERMINATED,
)


def test_a_trajectory_is_plain_text_without_color():
    assert render_trajectory(GUESS, color=False) == (
        "\nagentrl/Guess-v0  guess-7  seed 3\n"
        "return 1.00 · success · 2 turns · terminated\n"
        "\nturn 1   env     I think of a digit.\n"
        "                 Answer with one digit.\n"
        "         policy  4\n"
        "                 reward 0   log p -0.75, 2 tokens   refused\n"
        "\nturn 2   env     higher\n"
        "         policy  7\n"
        "                 reward 1   log p -1.00, 1 token   cut off\n"
    )


def test_color_dims_the_environment_and_highlights_the_policy():
    text = render_trajectory(GUESS, color=True)
    assert "\x1b[2mhigher\x1b[0m" in text
    assert "\x1b[1;36m7\x1b[0m" in text


def test_escape_codes_in_an_episode_do_not_reach_the_terminal():
    hostile = Trajectory("e", "t", 0, 0, (Turn((), (), (), "\x1b[2Jgone", "\x1b]0;title\x07"),), Ending.MAX_TURNS)
    assert "\x1b" not in render_trajectory(hostile, color=False)
    assert "\x1b[2J" not in render_trajectory(hostile, color=True)


def test_an_episode_that_broke_shows_its_error():
    broken = Trajectory("e", "t", 0, 0, (), Ending.ENV_ERROR, info={"error": "EnvError: no such shelf"})
    text = render_trajectory(broken, color=False)
    assert "0 turns · env_error" in text
    assert "EnvError: no such shelf" in text


def test_a_run_folder_shows_its_newest_rollouts(run_dir: Path):
    text = render_rollouts(run_dir, limit=2)
    assert text.startswith(f"{run_dir.name}/step_000059.jsonl.gz: 2 of 5 trajectories")
    assert text.count("return 1.00") == 2


def test_the_worst_episode_can_be_picked(run_dir: Path):
    text = render_rollouts(run_dir / "rollouts/step_000059.jsonl.gz", pick="worst")
    assert "1 of 5 trajectories" in text
    assert "return 0.00 · no success · 16 turns · max_turns" in text


def test_a_run_without_rollouts_says_so(tmp_path: Path):
    with pytest.raises(NotFound, match="no rollouts saved yet"):
        render_rollouts(tmp_path)
