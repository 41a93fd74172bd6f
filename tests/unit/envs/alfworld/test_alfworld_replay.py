import json

import pytest

from agentrl_envs.alfworld.engine import PythonEngine
from agentrl_envs.alfworld.replay import main, replay, wins


def record(game, *commands):
    """A recording in the form of the golden traces."""
    engine = PythonEngine()
    initial = engine.reset(game)
    steps = []
    for command in commands:
        played = engine.step(command)
        answer = {"observation": played.observation, "admissible": list(played.admissible), "won": played.won}
        steps.append({"command": command, "reward": float(played.won), "done": played.won} | answer)
    return {"game": game.id, "initial": initial.observation, "admissible": list(initial.admissible), "steps": steps}


def test_an_episode_repeats_itself(kitchen):
    assert list(replay(PythonEngine(), kitchen, record(kitchen, "go to countertop 1", "jump", "look"))) == []


@pytest.mark.parametrize(
    ("field", "value"), [("observation", "x"), ("admissible", []), ("won", True), ("reward", 1.0), ("done", True)]
)
def test_every_recorded_field_is_compared(kitchen, field, value):
    episode = record(kitchen, "look", "go to countertop 1")
    episode["steps"][1][field] = value
    (mismatch,) = replay(PythonEngine(), kitchen, episode)
    assert (mismatch.game_id, mismatch.step, mismatch.field, mismatch.recorded) == ("kitchen", 2, field, value)


def test_the_first_text_is_compared(kitchen):
    (mismatch,) = replay(PythonEngine(), kitchen, record(kitchen) | {"initial": "x"})
    assert (mismatch.step, mismatch.field) == (0, "observation")


def test_a_walkthrough_that_does_not_win_is_found(kitchen):
    assert not wins(PythonEngine(), kitchen)


def test_missing_games_are_one_line_on_stderr(tmp_path, capsys):
    (tmp_path / "recorded.json").write_text(json.dumps({"episodes": []}))
    assert main([str(tmp_path / "recorded.json"), "--games", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("no ALFWorld games in")
