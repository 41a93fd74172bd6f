import json
import re
from collections import Counter

import pytest

from agentrl.errors import EnvError
from agentrl_envs.webshop.catalogue import read_products
from agentrl_envs.webshop.files import make_shop
from agentrl_envs.webshop.generate import Knobs, generate


@pytest.fixture(scope="module")
def made():
    return generate(Knobs(num_products=400))


@pytest.fixture(scope="module")
def generated_shop(made):
    return make_shop(read_products(made.items, made.attributes, made.human), {})


def test_equal_knobs_give_equal_files(made):
    assert generate(Knobs(num_products=400)) == made
    assert generate(Knobs(num_products=400, catalogue_seed=1)) != made


def test_a_larger_catalogue_starts_with_the_smaller(made):
    assert generate(Knobs(num_products=50)).items == made.items[:50]


def test_files_are_json_and_have_the_originals_keys(made):
    assert json.loads(json.dumps(made.items)) == made.items
    keys = {"asin", "name", "full_description", "small_description", "pricing", "category", "query", "product_category"}
    assert all(keys | {"customization_options"} <= item.keys() for item in made.items)
    assert all({"attributes"} <= made.attributes[item["asin"]].keys() for item in made.items)


def test_every_asin_is_one_of_its_own():
    asins = [item["asin"] for item in generate(Knobs(num_products=3000)).items]
    assert len(set(asins)) == 3000
    assert all(re.fullmatch(r"B0[A-Z]{2}N[A-Z]{2}R[A-Z]{2}", asin) for asin in asins)


def test_just_what_is_asked_for_can_be_bought_and_is_worth_1(generated_shop):
    assert len(generated_shop.goals) > 1000
    assert {generated_shop.ceiling(goal) for goal in generated_shop.goals.values()} == {1.0}


def test_people_ask_too(made):
    shop = make_shop(read_products(made.items, made.attributes, made.human), {}, requests="human")
    assert len(shop.goals) == sum(map(len, made.human.values())) > 20
    assert {shop.ceiling(goal) for goal in shop.goals.values()} == {1.0}


def test_the_task_is_neither_trivial_nor_hopeless(generated_shop):
    goals = list(generated_shop.goals.values())[:200]
    found = [generated_shop.search(goal.instruction) for goal in goals]
    on_page_1 = sum(goal.asin in asins[:10] for goal, asins in zip(goals, found, strict=True))
    blind = sum(generated_shop.score(goal, asins[0], ()).reward == 1 for goal, asins in zip(goals, found, strict=True))
    assert on_page_1 > 180
    assert blind < 20


def test_catalogues_are_varied(made):
    assert len(Counter(item["query"] for item in made.items)) > 15
    assert len(Counter(item["category"] for item in made.items)) == 5
    assert 0 < sum(not item["customization_options"] for item in made.items) < 200
    assert 0 < sum(" - " in item["pricing"] for item in made.items) < 100


@pytest.mark.parametrize(
    "knobs", [{"num_products": 0}, {"num_products": 10**9}, {"max_values": 0}, {"wanted_percent": 101}]
)
def test_knobs_that_make_no_catalogue_are_refused(knobs):
    with pytest.raises(EnvError, match=rf"{next(iter(knobs))} is .*; it must be a whole number from 1 to"):
        Knobs(**knobs)
