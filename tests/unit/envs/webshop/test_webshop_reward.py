from dataclasses import replace

import pytest

from agentrl_envs.webshop.catalogue import Product
from agentrl_envs.webshop.goals import Goal
from agentrl_envs.webshop.reward import OptionMatch, Wanted, guessed_nouns, plain_color, score

SHIRT = Product(
    asin="B0000SHIRT",
    title="Acme Cotton Shirt",
    query="shirts",
    category="fashion",
    product_category="Clothing \u203a Men \u203a Shirts",
    pricing=(20.0,),
    description="It dries fast.",
    bullets=("Easy care", "Soft"),
    options={},
    attributes=("machine wash",),
)
GOAL = Goal("g", "B0000SHIRT", "", ("machine wash", "soft"), {"color": "navy", "size": "large"}, 30.0)
WANTED = Wanted("shirts", SHIRT.product_category, ("acme", "cotton", "shirt"))


def bought(
    goal=GOAL,
    product=SHIRT,
    *,
    nouns=("acme", "cotton", "shirt"),
    price=20.0,
    chosen=(),
    match: OptionMatch = "original",
):
    return score(goal, WANTED, product, nouns=nouns, price=price, chosen=chosen, option_match=match)


def test_just_what_was_asked_for_is_worth_1():
    assert bought(chosen=["navy", "large"]).reward == 1


def test_each_attribute_option_and_the_price_is_worth_a_fifth():
    assert bought().reward == pytest.approx(3 / 5)
    assert bought(chosen=["navy"]).reward == pytest.approx(4 / 5)
    assert bought(chosen=["navy", "large"], price=31.0).reward == pytest.approx(4 / 5)
    assert bought(product=replace(SHIRT, bullets=()), chosen=["navy", "large"]).reward == pytest.approx(4 / 5)


def test_parts_are_shares_and_unasked_ones_are_left_out():
    assert bought(chosen=["navy"]).parts() == {"r_type": 1, "r_price": 1, "r_attribute": 1, "r_option": 1 / 2}
    bare = replace(GOAL, attributes=(), options={})
    assert bought(bare).parts() == {"r_type": 1, "r_price": 1}


@pytest.mark.parametrize(
    ("nouns", "query", "path", "expected"),
    [
        (["acme"], "shirts", "x", 1.0),
        (["acme"], "other", "Men \u203a Clothing", 1.0),  # two parts in common
        (["acme", "cotton"], "other", "x", 1.0),  # 2 of 3 nouns
        ([], "shirts", "x", 0.0),  # no noun in common outweighs the query
    ],
)
def test_the_kind_of_product_scales_the_reward(nouns, query, path, expected):
    product = replace(SHIRT, query=query, product_category=path)
    assert bought(product=product, nouns=nouns).r_type == expected


@pytest.mark.parametrize(("num_common", "expected"), [(1, 0.1), (2, 0.5), (3, 1.0)])
def test_few_nouns_in_common_are_worth_less(num_common, expected):
    wanted = Wanted("other", "x", [f"w{number}" for number in range(11)])
    found = score(GOAL, wanted, SHIRT, nouns=wanted.nouns[:num_common], price=20.0, chosen=[])
    assert found.r_type == expected  # 1/11 < 0.1 < 2/11 < 0.2 < 3/11


def test_attributes_match_by_similar_words_or_inside_a_text():
    def has(attribute):
        return bought(replace(GOAL, attributes=(attribute,))).num_attributes == 1

    assert has("machine washable")
    assert has("dries fast")
    assert has("easy care")
    assert not has("Dries Fast")
    assert not has("waterproof")


@pytest.mark.parametrize("value", ["dash", "1877black", "rectangular"])
def test_a_color_inside_a_word_is_out_of_reach_in_the_original_and_not_when_fixed(value):
    goal = replace(GOAL, options={"color": value})
    assert bought(goal, chosen=[value]).num_options == 0
    assert bought(goal, chosen=[value], match="fixed").num_options == 1


def test_bare_values_are_compared_as_plain_colors():
    goal = replace(GOAL, options=("dark navy",))
    assert bought(goal, chosen=["dark red"]).num_options == 1
    assert bought(goal, chosen=["navy"]).num_options == 0


def test_the_plain_color_is_the_first_in_the_alphabet():
    assert plain_color("navy and blue") == "blue"
    assert plain_color("16 inch") == "16 inch"


def test_nouns_are_guessed_from_words_that_are_not_common():
    assert guessed_nouns("The Acme Shirt, with 3 Pockets") == ("acme", "shirt", "pockets")
