import hashlib
import json
from pathlib import Path

import pytest

from agentrl.errors import DataError, NotFound
from agentrl_envs.alfworld.manifests import SIZES, manifest_lines, read_manifest
from agentrl_envs.alfworld.store import GameStore, build_index, is_index

GRAMMAR = 'template :: "move {{o}} to {{r}}"; "task": [ {{ "rhs": "Your task is to: {}." }} ]'
IDS = [f"{split}/pick_and_place_simple-Mug-None-Desk-{n}/trial_{n}" for n, split in enumerate(["train", "valid_seen"])]


def write_games(folder: Path, problem: str, ids: list[str]) -> Path:
    for id in ids:
        file = folder / id / "game.tw-pddl"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(official(problem, id)))
    return folder


def official(problem: str, id: str) -> dict:
    task = GRAMMAR.format(f"put the mug of {id} in desk")
    document = {"pddl_domain": "(domain)", "grammar": task, "pddl_problem": problem}
    return document | {"solvable": True, "walkthrough": ["look"]}


@pytest.fixture
def problem(kitchen_document):
    return kitchen_document["pddl_problem"]


def test_an_index_gives_back_every_game_as_it_was(tmp_path, problem):
    build_index(write_games(tmp_path / "games", problem, IDS), tmp_path / "index.zip")
    store = GameStore(tmp_path / "index.zip")
    assert {id: store.document(id) for id in IDS} == {id: official(problem, id) for id in IDS}
    assert store.game(IDS[0]).task == f"put the mug of {IDS[0]} in desk."


def test_an_index_knows_the_sha256_of_the_files_in_the_order_of_their_ids(tmp_path, problem):
    build_index(write_games(tmp_path / "games", problem, IDS[::-1]), tmp_path / "index.zip")
    expected = [(id, hashlib.sha256(json.dumps(official(problem, id)).encode()).hexdigest()) for id in IDS]
    assert list(GameStore(tmp_path / "index.zip").hashes.items()) == expected


def test_neither_order_nor_place_of_the_files_changes_the_manifest(tmp_path, problem):
    build_index(write_games(tmp_path / "here", problem, IDS), tmp_path / "a.zip")
    build_index(write_games(tmp_path / "there" / "deeper", problem, IDS[::-1]), tmp_path / "b.zip")
    first, second = (manifest_lines(GameStore(tmp_path / name).hashes) for name in ("a.zip", "b.zip"))
    assert first == second


def test_the_index_of_a_folder_is_built_once_and_again_when_the_folder_changes(tmp_path, problem):
    games, cache = write_games(tmp_path / "games", problem, IDS[:1]), tmp_path / "cache"
    first, second = (GameStore.open(games, cache=cache) for _ in range(2))
    assert first.path == second.path
    write_games(games, problem, IDS[1:])
    assert list(GameStore.open(games, cache=cache).hashes) == IDS


def test_a_game_that_was_deleted_or_changed_after_the_index_was_built_is_missed(tmp_path, problem):
    games, cache = write_games(tmp_path / "games", problem, IDS), tmp_path / "cache"
    whole = GameStore.open(games, cache=cache).hashes
    file = games / IDS[1] / "game.tw-pddl"
    file.write_text(file.read_text() + " ")
    changed = GameStore.open(games, cache=cache).hashes
    assert [id for id in IDS if changed[id] != whole[id]] == [IDS[1]]
    file.unlink()
    assert list(GameStore.open(games, cache=cache).hashes) == IDS[:1]


def test_an_index_opens_as_it_is(tmp_path, problem):
    build_index(write_games(tmp_path / "games", problem, IDS), tmp_path / "index.zip")
    assert is_index(tmp_path / "index.zip")
    assert GameStore.open(tmp_path / "index.zip", cache=tmp_path / "unused").path == tmp_path / "index.zip"


def test_a_failed_build_leaves_nothing_behind(tmp_path, problem):
    games = write_games(tmp_path / "games", problem, IDS)
    (games / IDS[1] / "game.tw-pddl").write_text("{")
    with pytest.raises(DataError, match=f"{IDS[1]}: not an ALFWorld game"):
        build_index(games, tmp_path / "target" / "index.zip")
    assert list((tmp_path / "target").iterdir()) == []


def test_a_folder_without_games_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no game\.tw-pddl in it"):
        build_index(tmp_path / "empty", tmp_path / "index.zip")


def test_a_file_that_is_no_index_is_an_error(tmp_path):
    (tmp_path / "index.zip").write_text("no zip")
    with pytest.raises(DataError, match="not an index of ALFWorld games"):
        GameStore(tmp_path / "index.zip")


def test_an_unknown_game_is_named_with_the_nearest_one(tmp_path, problem):
    build_index(write_games(tmp_path / "games", problem, IDS), tmp_path / "index.zip")
    with pytest.raises(NotFound, match="Did you mean"):
        GameStore(tmp_path / "index.zip").document(IDS[0] + "1")


def test_missing_and_changed_games_are_counted_and_named(tmp_path, problem):
    split, *_ = official_ids = list(read_manifest("valid_seen"))[:7]
    build_index(write_games(tmp_path / "games", problem, official_ids), tmp_path / "index.zip")
    with pytest.raises(DataError) as caught:
        GameStore(tmp_path / "index.zip").task_set("valid_seen")
    message = str(caught.value)
    assert "of the 140 games of valid_seen, 133 are missing (" in message
    assert f"7 are not the official ones ({', '.join(official_ids[:5])}, ...)" in message
    assert split in message
    assert "scripts/get_alfworld.py" in message


def test_an_unknown_split_is_an_error():
    with pytest.raises(NotFound, match="Did you mean 'valid_seen'"):
        read_manifest("valid_sen")


@pytest.mark.parametrize(("split", "size"), [("train", 3553), ("valid_seen", 140), ("valid_unseen", 134)])
def test_manifests_are_complete_and_sorted(split, size):
    manifest = read_manifest(split)
    assert len(manifest) == SIZES[split] == size
    assert list(manifest) == sorted(manifest)
    assert all(id.startswith(f"{split}/") and len(sha256) == 64 for id, sha256 in manifest.items())
