"""This shop against records of the original, on the real 1,000 products and on products that were made up for it."""

import json

import pytest

from agentrl_envs.webshop.files import SMALL, Files, make_shop
from agentrl_envs.webshop.recordings import compare_goals
from agentrl_envs.webshop.replay import compare, main

pytestmark = pytest.mark.data

NUM_RECORDS = {
    "golden_goals_1k": 707,  # the hash of all, 600 goals, 13 goals of people, 93 prices
    "golden_pages": 321,  # 318 steps of 6 runs, 3 states with history
    "golden_reward": 54,
    "golden_reward_1k": 100,
    "golden_search_1k": 177,  # 90 texts, 87 queries
    "golden_trajectories_1k": 70,  # 62 steps and the goals of 8 episodes
}


@pytest.fixture(scope="module")
def shops(data_dir):
    files = Files.read(data_dir / "webshop" / SMALL)
    opened = {kind: make_shop(files.products, files.nouns, requests=kind) for kind in ("synthetic", "human")}
    return opened.__getitem__


@pytest.mark.parametrize(("name", "num_records"), NUM_RECORDS.items())
def test_every_record_is_the_same(data_dir, shops, name, num_records):
    content = json.loads((data_dir / "webshop" / f"{name}.json").read_text())
    found = list(compare(content, shops))
    assert [line for record in found for line in record] == []
    assert len(found) == num_records


def test_goals_are_hashed_as_the_original_hashes_them(data_dir, shops):
    content = json.loads((data_dir / "webshop" / "golden_goals_1k.json").read_text())
    content["meta"]["sha256_all"] = "0" * 64
    (told,) = next(iter(compare_goals(content, shops)))
    assert "sha256_all" in told


def test_458_of_the_goals_are_out_of_reach_but_not_when_the_option_match_is_fixed(shops):
    shop = shops("synthetic")
    reached = {
        match: [shop.ceiling(goal, match) == 1 for goal in shop.goals.values()] for match in ("original", "fixed")
    }
    assert {match: (len(found), found.count(False)) for match, found in reached.items()} == {
        "original": (6910, 458),
        "fixed": (6910, 0),
    }


def test_the_command_replays_the_whole_folder(data_dir, capsys):
    assert main([str(data_dir / "webshop")]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"{name}.json" for name in sorted(NUM_RECORDS)
    ]
