import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from agentrl_envs.alfworld.archive import find_data
from agentrl_envs.alfworld.engine import PythonEngine
from agentrl_envs.alfworld.expert import Goal, SearchingExpert
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.generate import Knobs, generate
from agentrl_envs.alfworld.store import GameStore

MAX_TURNS = 30
NUM_GAMES = 200
ACTIONS = ["go to shelf 1", "help", "inventory", "look"]


@dataclass(frozen=True)
class Turn:
    observation: str
    admissible: tuple[str, ...]
    action: str
    won: bool


def play(game: Game, expert: Callable[[str, dict[str, Any]], str]) -> Iterator[Turn]:
    """Turn by turn, so that two games can be played side by side."""
    engine = PythonEngine()
    played = engine.reset(game)
    for _ in range(MAX_TURNS):
        action = expert(played.observation, {"admissible_actions": list(played.admissible)})
        after = engine.step(action)
        yield Turn(played.observation, played.admissible, action, after.won)
        if after.won:
            return
        played = after


def wins(game: Game, expert: SearchingExpert) -> bool:
    return list(play(game, expert))[-1].won


@cache
def generated(split: str) -> list[Game]:
    return [Game.parse(generate(split, number, Knobs()), id=f"{split}/{number}") for number in range(NUM_GAMES)]


def rearranged(number: int, seed: int) -> Game:
    """A training game in which one object lies elsewhere."""
    document = generate("train", number, Knobs())
    problem, rng = document["pddl_problem"], random.Random(seed)
    locations = dict(re.findall(r"\(receptacleAtLocation (\S+) (\S+)\)", problem))
    thing, place = rng.choice(re.findall(r"\(inReceptacle (\w+) (\w+)\)", problem))
    elsewhere = rng.choice(sorted(set(locations) - {place}))
    for predicate, new in (("inReceptacle", elsewhere), ("objectAtLocation", locations[elsewhere])):
        problem = re.sub(rf"\({predicate} {thing} \w+\)", f"({predicate} {thing} {new})", problem)
    return Game.parse({**document, "pddl_problem": problem}, id=f"rearranged/{number}")


SENTENCES = [
    ("put a {thing} in {place}.", "place"),
    ("put some {thing} on {place}.", "place"),
    ("look at {thing} under the {place}.", "light"),
    ("examine the {thing} with the {place}.", "light"),
    ("put a clean {thing} in {place}.", "clean"),
    ("clean some {thing} and put it in {place}.", "clean"),
    ("put a hot {thing} in {place}.", "heat"),
    ("heat some {thing} and put it in {place}.", "heat"),
    ("put a cool {thing} in {place}.", "cool"),
    ("cool some {thing} and put it in {place}.", "cool"),
    ("put two {thing} in {place}.", "two"),
    ("find two {thing} and put them in {place}.", "two"),
]


@pytest.mark.parametrize(("sentence", "kind"), SENTENCES)
@pytest.mark.parametrize("thing", ["mug", "hotpot", "clean"])
def test_all_twelve_sentences_are_read(sentence, kind, thing):
    room = "You are in the middle of a room. Looking quickly around you, you see a shelf 1.\n\n"
    text = f"{room}Your task is to: {sentence.format(thing=thing, place='shelf')}"
    assert Goal.read(text) == Goal(kind, thing, "shelf")


def test_a_sentence_of_another_game_is_refused():
    with pytest.raises(ValueError, match=r"not one of ALFWorld's task sentences: 'juggle three mugs\.'"):
        Goal.read("Your task is to: juggle three mugs.")


def test_two_houses_that_have_looked_alike_so_far_get_the_same_action():
    compared, parted = 0, 0
    for number in range(NUM_GAMES):
        house, other = generated("train")[number], rearranged(number, seed=number)
        pairs = zip(play(house, SearchingExpert(number)), play(other, SearchingExpert(number)), strict=False)
        for here, there in pairs:
            if (here.observation, here.admissible) != (there.observation, there.admissible):
                parted += 1
                break
            assert here.action == there.action
            compared += 1
    # most houses differ where the expert sees it sooner or later, and look alike for some turns before
    assert parted > 0.5 * NUM_GAMES
    assert compared > 3 * NUM_GAMES


def test_nothing_in_info_but_the_admissible_actions_matters():
    for number, game in enumerate(generated("train")[:50]):
        expert, informed = (SearchingExpert(number, noise=0.2) for _ in range(2))
        spoiled = {"task_id": game.id, "task": "put a lie in fridge.", "task_type": "lie", "walkthrough": ["look"]}
        played = play(game, expert)
        told = play(game, lambda text, info, informed=informed, extra=spoiled: informed(text, extra | info))
        assert list(played) == list(told)


def test_the_same_seed_plays_the_same_and_another_searches_in_another_order():
    game = generated("train")[0]
    orders = [tuple(turn.action for turn in play(game, SearchingExpert(seed, noise=0.2))) for seed in [*range(20)] * 2]
    assert orders[:20] == orders[20:]
    assert len(set(orders)) > 5


@pytest.mark.parametrize("split", ["train", "in_distribution", "out_of_distribution"])
def test_without_noise_it_wins_nearly_every_generated_game(split):
    won = sum(wins(game, SearchingExpert(seed)) for seed, game in enumerate(generated(split)))
    assert won >= 0.95 * NUM_GAMES


@pytest.mark.data
def test_without_noise_it_wins_most_official_training_games(data_dir):
    store = GameStore.open(find_data(data_dir, {}))
    ids = random.Random(0).sample(store.task_set("train").ids, NUM_GAMES)
    won = sum(wins(store.game(id), SearchingExpert(seed)) for seed, id in enumerate(ids))
    assert won >= 0.8 * NUM_GAMES


def test_every_action_is_admissible_and_help_is_never_asked_for():
    for seed, game in enumerate(generated("train")[:100]):
        for turn in play(game, SearchingExpert(seed, noise=0.5)):
            assert turn.action in turn.admissible
            assert turn.action != "help"


@pytest.mark.parametrize("noise", [0.0, 0.25, 1.0])
def test_the_share_of_random_actions_is_the_noise(noise):
    """Offers one sensible action beside a thousand that it would never choose by itself."""
    offered = [*ACTIONS, *(f"slice apple {number} with knife 1" for number in range(1000))]
    first = "You see a shelf 1.\n\nYour task is to: put a mug in shelf."
    num_experts = 2000
    slices = sum(
        SearchingExpert(seed, noise)(first, {"admissible_actions": offered}).startswith("slice")
        for seed in range(num_experts)
    )
    share, expected = slices / num_experts, noise * 1000 / 1003  # 1004 are offered; help is never taken
    # four standard deviations of a share of 2000 draws, at most 0.045
    assert abs(share - expected) <= 4 * (expected * (1 - expected) / num_experts) ** 0.5


def test_noise_costs_wins_but_is_recovered_from():
    games = generated("train")
    exact, noisy, at_random = (
        sum(wins(game, SearchingExpert(seed, noise)) for seed, game in enumerate(games)) for noise in (0.0, 0.3, 1.0)
    )
    assert exact > noisy > 0.6 * NUM_GAMES
    assert at_random < 0.2 * NUM_GAMES
