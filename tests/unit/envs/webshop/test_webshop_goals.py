from collections import Counter
from random import Random

from agentrl_envs.webshop.catalogue import Catalogue, read_products
from agentrl_envs.webshop.goals import NO_LIMIT, goals_sha256, human_goals, shuffled, synthetic_goals


def catalogue_of(items, attributes, human=None, seed=0):
    rng = Random(seed)
    return Catalogue.of(read_products(items, attributes, human), rng), rng


def test_there_is_a_goal_for_every_combination_of_options(items, attributes):
    goals = synthetic_goals(*catalogue_of(items, attributes))
    assert [(goal.id, goal.options) for goal in goals] == [
        ("B0000SHIRT/000", {"color": "navy", "size": "large"}),
        ("B0000SHIRT/001", {"color": "navy", "size": "small"}),
        ("B0000SHIRT/002", {"color": "red | white", "size": "large"}),
        ("B0000SHIRT/003", {"color": "red | white", "size": "small"}),
        ("B0000TOWEL/000", {"color": "navy"}),
    ]


def test_the_text_names_options_and_the_price_limit(items, attributes):
    goal = synthetic_goals(*catalogue_of(items, attributes))[1]
    expected = "Find me machine wash shirts with color: navy, and size: small, and price lower than"
    assert goal.instruction == f"{expected} {goal.price_upper:.2f} dollars"


def test_the_limit_is_the_higher_of_two_of_the_next_four_tens(items, attributes, shirt_price):
    goals = [synthetic_goals(*catalogue_of(items, attributes, seed=seed))[-1] for seed in range(60)]
    assert 10 < shirt_price < 20
    assert {goal.price_upper for goal in goals} == {40.0, 50.0, 60.0}  # the towel costs exactly 20


def test_a_dear_product_has_no_limit(items, attributes):
    items[1]["pricing"] = "$985.00"  # only 990 is above
    goal = synthetic_goals(*catalogue_of(items, attributes))[-1]
    assert (goal.price_upper, goal.instruction) == (NO_LIMIT, "Find me cotton towels with color: navy")


def test_the_weight_is_the_rarity_of_the_attributes(items, attributes):
    goals = synthetic_goals(*catalogue_of(items, attributes))
    assert [goal.weight for goal in goals] == [1 / 4] * 4 + [1]


def test_a_persons_request_without_attributes_is_no_goal(items, attributes, human):
    (goal,) = human_goals(*catalogue_of(items, attributes, human))
    assert (goal.id, goal.options, goal.weight) == ("B0000SHIRT/human000", ("navy",), 1)
    assert goal.instruction == f"a navy shirt, please, and price lower than {goal.price_upper:.2f} dollars"


def test_equal_seeds_give_equal_goals_and_others_do_not(items, attributes):
    hashes = [goals_sha256(synthetic_goals(*catalogue_of(items, attributes, seed=seed))) for seed in (0, 0, 1, 2)]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) > 1


def test_shuffling_keeps_every_goal_and_does_not_depend_on_the_caller(items, attributes):
    goals = synthetic_goals(*catalogue_of(items, attributes))
    assert Counter(goal.id for goal in shuffled(goals)) == Counter(goal.id for goal in goals)
    assert shuffled(goals) == shuffled(goals) != goals
