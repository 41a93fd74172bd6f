import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from agentrl.errors import DataError
from agentrl_envs.alfworld.archive import INDEX_NAME, find_data, read_games

GAMES = {"train/task-A/trial_1": b"{1}", "train/task-A/trial_2": b"{2}", "valid_seen/task-B/trial_3": b"{3}"}


def write_folder(folder: Path, games: dict[str, bytes] = GAMES) -> Path:
    for id, content in games.items():
        file = folder / "json_2.1.1" / id / "game.tw-pddl"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        (file.parent / "traj_data.json").write_text("{}")
    return folder


def test_a_folder_a_tar_and_a_zip_of_it_hold_the_same_games(tmp_path):
    folder = write_folder(tmp_path / "games")
    with tarfile.open(tmp_path / "games.tar.xz", "w:xz") as archive:
        archive.add(folder / "json_2.1.1", "json_2.1.1")
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, file.relative_to(folder))
    for source in (folder, folder / "json_2.1.1", tmp_path / "games.tar.xz", tmp_path / "games.zip"):
        assert dict(read_games(source)) == GAMES


def test_a_folder_below_the_splits_is_refused(tmp_path):
    folder = write_folder(tmp_path) / "json_2.1.1" / "train"
    with pytest.raises(DataError, match="give the folder above the splits"):
        list(read_games(folder))


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "games.txt").write_text("no games")
    with pytest.raises(DataError, match="neither a folder nor"):
        list(read_games(tmp_path / "games.txt"))


def test_an_explicit_place_comes_first_then_agentrl_data_then_alfworld_data_then_the_cache(tmp_path):
    explicit, data, alfworld_data = tmp_path / "explicit", tmp_path / "data", tmp_path / "alfworld_data"
    home = tmp_path / "home"
    environ = {"AGENTRL_DATA": str(data), "ALFWORLD_DATA": str(alfworld_data), "HOME": str(home)}
    for place in (home / ".cache" / "alfworld", alfworld_data, data / "alfworld"):
        write_folder(place)
        assert find_data(None, environ) == place / "json_2.1.1"
    assert find_data(write_folder(explicit), environ) == explicit / "json_2.1.1"


def test_an_index_comes_before_an_archive(tmp_path):
    (tmp_path / "json_2.1.1.all4027.tar.xz").touch()
    assert find_data(tmp_path, {}).name == "json_2.1.1.all4027.tar.xz"
    (tmp_path / INDEX_NAME).touch()
    assert find_data(tmp_path, {}).name == INDEX_NAME


def test_an_explicit_place_without_games_is_an_error_whatever_is_elsewhere(tmp_path):
    elsewhere = write_folder(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="nowhere"):
        find_data(tmp_path / "nowhere", {"ALFWORLD_DATA": str(elsewhere)})


def test_missing_data_says_in_one_line_where_it_looked_and_what_to_do(tmp_path):
    environ = {"AGENTRL_DATA": "/a", "ALFWORLD_DATA": "/b", "HOME": str(tmp_path)}
    with pytest.raises(DataError) as caught:
        find_data(None, environ)
    places = ", ".join([os.path.join("/a", "alfworld"), "/b", str(tmp_path / ".cache" / "alfworld")])
    assert f"no ALFWorld games in {places}; run 'pip install alfworld && alfworld-download'" in str(caught.value)
    assert "\n" not in str(caught.value)
