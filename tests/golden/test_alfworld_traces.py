"""The Python engine against plays that were recorded from the stock engine, on the official games."""

import json

import pytest

from agentrl_envs.alfworld.archive import find_data, read_games
from agentrl_envs.alfworld.engine import PythonEngine
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.replay import main, replay, wins
from agentrl_envs.alfworld.store import GameStore, build_index

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def archive(data_dir):
    return find_data(data_dir, {})


@pytest.fixture(scope="module")
def index(archive, tmp_path_factory):
    path = tmp_path_factory.mktemp("alfworld") / "index.zip"
    build_index(archive, path)
    return path


def test_recorded_plays_repeat_word_for_word(data_dir, archive):
    episodes = {
        e["game"]: e for e in json.loads((data_dir / "alfworld" / "golden_traces.json").read_text())["episodes"]
    }
    assert len(episodes) == 39
    games = [Game.parse(json.loads(raw), id=id) for id, raw in read_games(archive) if id in episodes]
    assert len(games) == 39
    assert [mismatch for game in games for mismatch in replay(PythonEngine(), game, episodes[game.id])] == []


@pytest.mark.slow
def test_every_walkthrough_wins(archive):
    engine = PythonEngine()
    results = {id: wins(engine, Game.parse(json.loads(raw), id=id)) for id, raw in read_games(archive)}
    assert len(results) == 4027
    assert [id for id, won in results.items() if not won] == []


@pytest.mark.slow
def test_the_official_splits_are_complete_and_unchanged(index):
    store = GameStore(index)
    assert {split: len(store.task_set(split)) for split in ("train", "valid_seen", "valid_unseen")} == {
        "train": 3553,
        "valid_seen": 140,
        "valid_unseen": 134,
    }


@pytest.mark.slow
def test_the_replay_command_succeeds_on_the_recorded_plays(data_dir, index, capsys):
    assert main([str(data_dir / "alfworld" / "golden_traces.json"), "--games", str(index)]) == 0
    assert "39 episodes, 625 steps, 0 mismatches" in capsys.readouterr().out
