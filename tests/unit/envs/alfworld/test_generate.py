import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentrl.errors import EnvError
from agentrl_envs.alfworld.engine import PythonEngine
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.generate import Knobs, generate, held_out
from agentrl_envs.alfworld.house import FAMILIES, LAMPS, ROOMS, THINGS, TREATMENTS
from agentrl_envs.alfworld.stock import TextWorldEngine, stock_is_installed

SPLITS = ("train", "in_distribution", "out_of_distribution")
TRAINED_ON = ("train", "in_distribution")
NUM_GAMES = 200
KNOBS = {
    "default": Knobs(),
    "tiny": Knobs(receptacles=(5, 6), objects=(5, 8)),
    "large": Knobs(receptacles=(12, 16), objects=(20, 40)),
    "smallest": Knobs(receptacles=(5, 5), objects=(2, 2), layouts=8),
    "two families": Knobs(families=("pick_heat_then_place_in_recep", "look_at_obj_in_light"), layouts=8),
}
"""By name, because each pair of knobs and split is generated once for all tests."""

NAMES = {
    f"{name.lower()}type": name
    for name in [*THINGS, *LAMPS, *(place for room in ROOMS.values() for place in (*room.fixed, *room.others))]
}
"""PDDL type -> name in the tables."""

every_split = pytest.mark.parametrize("split", SPLITS)
all_knobs = pytest.mark.parametrize("knobs", KNOBS)


@cache
def documents(split: str, knobs: str) -> list[dict[str, Any]]:
    return [generate(split, number, KNOBS[knobs]) for number in range(NUM_GAMES)]


@cache
def games(split: str, knobs: str) -> list[Game]:
    return [Game.parse(document, id=f"{split}/{n}") for n, document in enumerate(documents(split, knobs))]


def layout(game: Game) -> tuple[str, ...]:
    return tuple(sorted(NAMES[receptacle.type] for receptacle in game.receptacles))


def pair(item_type: str, receptacle_type: str) -> tuple[str, str]:
    return NAMES[item_type], NAMES[receptacle_type]


def goal_pair(game: Game) -> tuple[str, str]:
    return pair(game.goal.item_type, game.goal.receptacle_type or game.goal.lamp_type)


def placements(game: Game) -> set[tuple[str, str]]:
    return {pair(item.type, receptacle.type) for receptacle, items in game.contents.items() for item in items}


def homes(name: str) -> frozenset[str]:
    return (THINGS | LAMPS)[name].homes


@every_split
@all_knobs
def test_the_walkthrough_wins_with_its_last_command_and_not_before(split, knobs):
    for game in games(split, knobs):
        engine = PythonEngine()
        played = [engine.reset(game), *map(engine.step, game.walkthrough)]
        assert all(answer.accepted for answer in played), game.id
        assert [answer.won for answer in played] == [False] * len(game.walkthrough) + [True], game.id


@every_split
@all_knobs
def test_a_house_is_as_large_as_the_knobs_say(split, knobs):
    for game in games(split, knobs):
        for knob, found in (("receptacles", game.receptacles), ("objects", game.places)):
            fewest, most = getattr(KNOBS[knobs], knob)
            assert fewest <= len(found) <= most, game.id


@every_split
@all_knobs
def test_families_take_turns(split, knobs):
    families = KNOBS[knobs].families
    counts = Counter(game.task_type for game in games(split, knobs))
    assert set(counts) == set(families)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert [game.task_type for game in games(split, knobs)[: len(families)]] == list(families)


@all_knobs
def test_layouts_of_the_two_sides_never_meet(knobs):
    trained_on = {layout(game) for split in TRAINED_ON for game in games(split, knobs)}
    unseen = {layout(game) for game in games("out_of_distribution", knobs)}
    assert not trained_on & unseen
    assert not any(held_out(*one) for one in trained_on)
    assert all(held_out(*one) for one in unseen)


def test_games_in_distribution_have_the_layouts_of_the_training_games():
    # 8 layouts and 200 games: that one of them is missed has a probability below 8 (7/8)^200 = 2e-11
    layouts = [{layout(game) for game in games(split, "two families")} for split in TRAINED_ON]
    assert layouts[0] == layouts[1]
    assert len(layouts[0]) <= KNOBS["two families"].layouts


@pytest.mark.parametrize("split", TRAINED_ON)
@all_knobs
def test_held_out_pairs_are_neither_goals_nor_at_the_start_of_games_that_resemble_training(split, knobs):
    for game in games(split, knobs):
        assert not held_out(*goal_pair(game)), game.id
        assert not [one for one in placements(game) if held_out(*one)], game.id


@all_knobs
def test_every_goal_out_of_distribution_is_a_held_out_pair(knobs):
    assert all(held_out(*goal_pair(game)) for game in games("out_of_distribution", knobs))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_many_goals_on_either_side(family):
    only = replace(KNOBS["default"], families=(family,))
    for split, least in (("train", 20), ("out_of_distribution", 8)):
        asked = {goal_pair(Game.parse(generate(split, number, only), id="any")) for number in range(NUM_GAMES)}
        assert len(asked) >= least


@every_split
def test_a_game_is_a_function_of_split_number_and_knobs(split):
    for number in range(20):
        document = documents(split, "tiny")[number]
        assert generate(split, number, replace(KNOBS["tiny"])) == document
    assert len({document["pddl_problem"] for document in documents(split, "tiny")}) == NUM_GAMES


def test_splits_and_knobs_give_different_games():
    first = [documents(split, knobs)[0]["pddl_problem"].split("\n", 1)[1] for split in SPLITS for knobs in KNOBS]
    assert len(set(first)) == len(SPLITS) * len(KNOBS)


PRINT_HASH = """
import hashlib, json
from agentrl_envs.alfworld.generate import Knobs, generate
games = [generate(split, n, Knobs()) for split in ("train", "out_of_distribution") for n in range(30)]
print(hashlib.sha256(json.dumps(games).encode()).hexdigest())
"""


def test_games_do_not_depend_on_the_hash_seed_of_the_process():
    here = [*documents("train", "default")[:30], *documents("out_of_distribution", "default")[:30]]
    expected = hashlib.sha256(json.dumps(here).encode()).hexdigest()
    for seed in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        printed = subprocess.run(
            [sys.executable, "-c", PRINT_HASH], env=environ, capture_output=True, text=True, check=True
        )
        assert printed.stdout.strip() == expected


@every_split
@all_knobs
def test_ids_read_as_names_that_are_numbered_from_one(split, knobs):
    for game in games(split, knobs):
        named = [*game.receptacles, *game.places]
        numbers: dict[str, list[int]] = {}
        for one in named:
            kind, number = re.fullmatch(r"([a-z]+) ([0-9]+)", one.name).groups()  # pyright: ignore[reportOptionalMemberAccess]
            assert one.type == f"{kind}type"
            numbers.setdefault(kind, []).append(int(number))
        assert all(sorted(found) == list(range(1, len(found) + 1)) for found in numbers.values()), game.id


@every_split
def test_everything_lies_where_it_may_and_only_there(split):
    for game in games(split, "default"):
        for receptacle, items in game.contents.items():
            for item in items:
                name, place = pair(item.type, receptacle.type)
                assert place in homes(name)
                assert name in LAMPS or item.type in receptacle.accepts
        assert sum(map(len, game.contents.values())) == len(game.places)


@every_split
def test_receptacles_have_locations_of_their_own_and_start_closed(split):
    for game in games(split, "default"):
        assert all(len(there) == 1 for there in game.at.values())
        assert game.start not in game.at
        assert not game.opened


@every_split
def test_games_that_treat_a_thing_have_what_does_it(split):
    for game in games(split, "default"):
        if game.task_type in TREATMENTS:
            _, station = TREATMENTS[game.task_type]
            assert station in layout(game), game.id


@every_split
def test_the_task_sentence_names_the_goal(split):
    for game in games(split, "default"):
        thing, place = goal_pair(game)
        assert re.search(rf"\b{thing.lower()}\b.*\b{place.lower()}\b", game.task), game.task


def test_both_sentences_of_every_family_occur():
    starts = {(game.task_type, *game.task.split()[:2]) for game in games("train", "default")}
    assert Counter(family for family, *_ in starts) == dict.fromkeys(FAMILIES, 2)


def test_every_word_is_one_of_the_tiny_policys():
    words = set((Path(__file__).parents[4] / "scripts" / "tiny_words.txt").read_text().split())
    dropped = {"a", "an", "the", "and"}
    for split in SPLITS:
        for game in games(split, "large"):
            engine = PythonEngine()
            played = [engine.reset(game), *map(engine.step, game.walkthrough)]
            texts = [text for answer in played for text in (answer.observation, *answer.admissible)]
            said = set(re.findall(r"[a-z0-9]+", " ".join(texts).lower())) - dropped
            assert said <= words, (game.id, said - words)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"families": ("pick_and_juggle",)}, r"families: \('pick_and_juggle',\) given; use a list of some of pick_and"),
        ({"families": "look_at_obj_in_light"}, "families: 'look_at_obj_in_light' given; use a list"),
        ({"families": ()}, r"families: \(\) given"),
        ({"receptacles": (4, 9)}, r"receptacles: \(4, 9\) given; use \[fewest, most\], two whole numbers from 5 to 16"),
        ({"receptacles": (9, 6)}, r"receptacles: \(9, 6\) given"),
        ({"receptacles": (6, 40)}, r"receptacles: \(6, 40\) given"),
        ({"receptacles": 7}, "receptacles: 7 given"),
        ({"receptacles": (6.0, 9.0)}, r"receptacles: \(6\.0, 9\.0\) given"),
        ({"objects": (1, 4)}, r"objects: \(1, 4\) given; use \[fewest, most\], two whole numbers from 2 to 40"),
        ({"objects": (5,)}, r"objects: \(5,\) given"),
        ({"layouts": 7}, "layouts: 7 cannot hold every family; use a whole number of 8 or more"),
        ({"layouts": "many"}, "layouts: 'many' cannot"),
    ],
)
def test_knobs_that_cannot_be_are_refused_with_what_can(wrong, complaint):
    with pytest.raises(EnvError, match=complaint):
        Knobs(**wrong)


@pytest.mark.skipif(not stock_is_installed(), reason="the textworld extra is not installed")
@pytest.mark.slow
@every_split
def test_the_stock_engine_loads_generated_games_and_their_walkthroughs_win(split):
    found = {game.id: game for game in games(split, "tiny")[: len(FAMILIES)]}
    engine = TextWorldEngine(lambda id: documents(split, "tiny")[int(id.rpartition("/")[2])])
    for game in found.values():
        engine.reset(game)
        won = [engine.step(command).won for command in game.walkthrough]
        assert won == [False] * (len(game.walkthrough) - 1) + [True], game.id
    engine.close()
