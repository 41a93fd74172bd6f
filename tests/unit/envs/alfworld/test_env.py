import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env

import agentrl
from agentrl.env import text_env
from agentrl.errors import DataError, EnvError, NotFound
from agentrl.tasks import manifest_sha256
from agentrl_envs.alfworld.env import ALFWorld
from agentrl_envs.alfworld.generate import Knobs, generate
from agentrl_envs.alfworld.house import FAMILIES
from agentrl_envs.alfworld.manifests import manifest_lines, read_manifest
from agentrl_envs.alfworld.store import build_index

TASK = "train/000000000"
OFFICIAL = "valid_seen/pick_and_place_simple-Mug-None-Desk-308/trial_1"
GRAMMAR = 'template :: "move {o} to {r}"; "task": [ { "rhs": "Your task is to: put a mug in desk." } ]'
ID = "agentrl/ALFWorld-v0"


@pytest.fixture
def official(tmp_path: Path, kitchen_document: dict[str, Any]) -> ALFWorld:
    """An index of one kitchen under the id of an official game."""
    file = tmp_path / "games" / OFFICIAL / "game.tw-pddl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**kitchen_document, "pddl_domain": "(domain)", "grammar": GRAMMAR}))
    build_index(tmp_path / "games", tmp_path / "index.zip")
    return ALFWorld(games="official", data=tmp_path / "index.zip")


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without official games."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AGENTRL_DATA", "ALFWORLD_DATA"):
        monkeypatch.delenv(name, raising=False)


def walkthrough(task_id: str) -> list[str]:
    split, number = task_id.split("/")
    return generate(split, int(number), Knobs())["walkthrough"]


def test_gymnasiums_own_check_passes():
    check_env(agentrl.make(ID).unwrapped, skip_render_check=True)


@pytest.mark.data
def test_gymnasiums_own_check_passes_with_official_games(data_dir):
    check_env(ALFWorld(games="official", data=data_dir), skip_render_check=True)


def test_a_generated_game_starts_by_its_id_without_the_engines_banner():
    observation, info = ALFWorld().reset(options={"task_id": TASK})
    assert observation.startswith("You are in the middle of a room. Looking quickly around you, you see a ")
    assert observation.endswith(f"\n\nYour task is to: {info['task']}")


def test_an_official_game_starts_by_its_id_without_the_engines_banner(official):
    observation, info = official.reset(options={"task_id": OFFICIAL})
    assert observation.startswith("You are in the middle of a room. Looking quickly around you, you see a countertop 1")
    assert observation.endswith("\n\nYour task is to: put a mug in desk.")
    assert (info["task_id"], info["task_type"]) == (OFFICIAL, "pick_and_place_simple")


def test_info_has_the_standard_keys():
    env = ALFWorld()
    _, info = env.reset(options={"task_id": TASK})
    assert set(info) == {"task_id", "task", "task_type", "admissible_actions"}
    assert (info["task_id"], info["task_type"]) == (TASK, FAMILIES[0])
    *_, after = env.step("look")
    assert set(after) == {*info, "success", "inadmissible"}
    assert {key: after[key] for key in ("task_id", "task", "task_type")} == {
        key: info[key] for key in ("task_id", "task", "task_type")
    }


def test_admissible_actions_are_a_sorted_list_of_its_own_for_every_step():
    env = ALFWorld()
    _, info = env.reset(options={"task_id": TASK})
    first = info["admissible_actions"]
    assert isinstance(first, list)
    assert first == sorted(set(first))
    first.clear()  # whoever changes the list changes nothing in the game
    assert env.step("look")[4]["admissible_actions"] != []


@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_success_and_reward_come_with_the_won_game_alone(number):
    env, task_id = ALFWorld(), f"train/{number:09d}"
    env.reset(options={"task_id": task_id})
    played = [env.step(command) for command in walkthrough(task_id)]
    ends = [(reward, terminated, truncated, info["success"]) for _, reward, terminated, truncated, info in played]
    assert ends == [(0.0, False, False, False)] * (len(played) - 1) + [(1.0, True, False, True)]


def test_running_out_of_turns_is_truncated_and_neither_terminated_nor_a_success():
    env = agentrl.make(ID, max_turns=3)
    env.reset(options={"task_id": TASK})
    played = [env.step("look") for _ in range(3)]
    assert [step[2:4] for step in played] == [(False, False), (False, False), (False, True)]
    assert not any(step[4]["success"] for step in played)


def test_the_limit_is_fifty_turns_unless_told_otherwise():
    env = agentrl.make(ID)
    env.reset(options={"task_id": TASK})
    assert [env.step("look")[3] for _ in range(50)] == [False] * 49 + [True]


def test_a_refused_command_is_inadmissible_and_changes_nothing():
    env = ALFWorld()
    _, before = env.reset(options={"task_id": TASK})
    observation, reward, terminated, _, info = env.step("jump")
    assert (observation, reward, terminated, info["inadmissible"]) == ("Nothing happens.", 0.0, False, True)
    assert info["admissible_actions"] == before["admissible_actions"]
    assert not env.step("look")[4]["inadmissible"]


@pytest.mark.parametrize(("accept_put", "won"), [(True, True), (False, False)])
def test_the_old_spelling_of_move_is_understood_unless_told_otherwise(accept_put, won):
    env = ALFWorld(accept_put=accept_put)
    env.reset(options={"task_id": TASK})
    *commands, last = walkthrough(TASK)
    for command in commands:
        env.step(command)
    moved, to, place = last.removeprefix("move ").partition(" to ")
    assert to
    assert env.step(f"put {moved} in/on {place}")[2] is won


def test_without_a_task_the_seed_picks_a_training_game():
    env = ALFWorld()
    picked = [env.reset(seed=seed)[1]["task_id"] for seed in range(20)]
    assert picked == [ALFWorld().reset(seed=seed)[1]["task_id"] for seed in range(20)]
    assert len(set(picked)) == 20
    assert all(task_id.startswith("train/") for task_id in picked)


def test_an_environment_goes_on_to_the_next_game_after_any_other():
    env = ALFWorld()
    first = env.reset(options={"task_id": TASK})
    for command in walkthrough(TASK):
        env.step(command)
    env.reset(options={"task_id": "out_of_distribution/000000003"})
    env.step("look")
    assert env.reset(options={"task_id": TASK}) == first


def test_generated_splits_have_roles_sizes_and_hashes_of_their_own():
    env = ALFWorld()
    sets = {split: env.task_set(split) for split in env.splits}
    assert env.splits == {
        **{split: split for split in ("train", "in_distribution", "out_of_distribution")},
        "train_1024": "train",
    }
    assert {split: len(tasks) for split, tasks in sets.items()} == {
        "train": 1_000_000,
        "train_1024": 1024,
        "in_distribution": 256,
        "out_of_distribution": 256,
    }
    assert len({tasks.sha256 for tasks in sets.values()}) == 4
    assert sets["train"].sha256 == ALFWorld().task_set("train").sha256
    assert sets["train"].sha256 != ALFWorld(objects=[9, 9]).task_set("train").sha256


def test_generated_ids_are_sorted_and_playable_from_the_first_to_the_last():
    env = ALFWorld()
    for split in env.splits:
        ids = env.task_set(split).ids
        shown = [ids[0], ids[1], ids[len(ids) - 2], ids[len(ids) - 1]]
        assert shown == sorted(set(shown))
        assert ids[-1] == ids[len(ids) - 1]
        assert list(ids[:2]) == shown[:2]
        assert [env.reset(options={"task_id": id})[1]["task_id"] for id in shown] == shown
        with pytest.raises(IndexError):
            ids[len(ids)]


def test_an_official_environment_has_the_official_splits(official):
    assert official.splits == {
        "train": "train",
        "train_1024": "train",
        "valid_seen": "in_distribution",
        "valid_unseen": "out_of_distribution",
    }


@pytest.mark.data
def test_the_official_task_sets_are_complete_and_carry_the_manifests_hash(data_dir):
    env = ALFWorld(games="official", data=data_dir)
    sets = {split: env.task_set(split) for split in env.splits}
    assert {split: len(tasks) for split, tasks in sets.items()} == {
        "train": 3553,
        "train_1024": 1024,
        "valid_seen": 140,
        "valid_unseen": 134,
    }
    for split, tasks in sets.items():
        assert tasks.sha256 == manifest_sha256(manifest_lines(read_manifest(split)))
        observation, info = env.reset(options={"task_id": tasks.ids[0]})
        assert (info["task_id"], "Welcome" in observation) == (tasks.ids[0], False)


def test_the_subset_of_the_official_training_games_depends_on_their_ids_alone():
    train, chosen = read_manifest("train"), read_manifest("train_1024")
    assert list(chosen.items()) == [(id, train[id]) for id in sorted(chosen)]
    smallest = sorted(train, key=lambda id: hashlib.sha256(id.encode()).hexdigest())[:1024]
    assert set(chosen) == set(smallest)
    assert {id.split("/")[1].split("-")[0] for id in chosen} == {id.split("/")[1].split("-")[0] for id in train}


def test_knobs_may_be_lists_as_in_a_configuration_file():
    env = text_env(agentrl.make(ID, receptacles=[5, 5], objects=[5, 5], families=["look_at_obj_in_light"]))
    observation, info = env.reset(options={"task_id": TASK})
    assert len(re.findall(r"[a-z]+ [0-9]", observation.partition("Your task")[0])) == 5
    assert info["task_type"] == "look_at_obj_in_light"


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"games": "offical"}, EnvError, "games: 'offical' is neither generated nor official"),
        ({"backend": "stock"}, EnvError, "backend: 'stock' is neither python nor textworld"),
        ({"receptacle": [5, 6]}, EnvError, "'receptacle'; the knobs .* are families, receptacles, objects, layouts"),
        ({"receptacles": 5}, EnvError, "receptacles: 5 given; use"),
        (
            {"games": "official", "objects": [5, 6]},
            EnvError,
            "objects: only generated games have knobs; set games: gen",
        ),
    ],
)
def test_options_that_cannot_be_are_refused_with_what_can(options, error, complaint):
    with pytest.raises(error, match=complaint):
        agentrl.make(ID, **options)


@pytest.mark.parametrize(
    "task_id",
    ["", "train", "train/x", "train/7", "train/000000_01", "valid_seen/000000001", "in_distribution/000000256"],
)
def test_an_unknown_generated_game_is_refused_with_how_ids_read(task_id):
    with pytest.raises(
        NotFound, match=f"no generated game '{task_id}'; ids read train/000000000 .* up to train/000999"
    ):
        ALFWorld().reset(options={"task_id": task_id})


def test_an_unknown_official_game_is_refused_with_the_nearest(official):
    with pytest.raises(NotFound, match=f"Did you mean '{OFFICIAL}'"):
        official.reset(options={"task_id": OFFICIAL + "2"})


def test_an_unknown_split_is_refused_with_those_there_are(official):
    with pytest.raises(
        NotFound, match=r"no split 'out'; it has: train, train_1024, in_distribution, out_of_distribution"
    ):
        ALFWorld().task_set("out")
    with pytest.raises(
        NotFound, match=r"it has: train, train_1024, valid_seen, valid_unseen.* Did you mean 'valid_seen'\?"
    ):
        official.task_set("valid_sen")


@pytest.mark.usefixtures("no_data")
def test_official_games_without_data_are_one_line_with_the_command_that_gets_them():
    with pytest.raises(DataError) as caught:
        agentrl.make(ID, games="official")
    assert "\n" not in str(caught.value)
    assert "alfworld-download" in str(caught.value)
    assert "scripts/get_alfworld.py" in str(caught.value)


def test_the_expert_is_a_new_player_for_every_seed():
    env = ALFWorld()
    observation, info = env.reset(options={"task_id": TASK})
    asked = [env.expert(seed)(observation, info) for seed in range(20)]
    assert asked == [env.expert(seed)(observation, info) for seed in range(20)]
    assert len(set(asked)) > 1
    assert set(asked) <= set(info["admissible_actions"])


def test_closing_and_going_on_is_harmless():
    env = ALFWorld()
    env.close()
    env.reset(options={"task_id": TASK})
    env.close()
    env.close()
