from dataclasses import replace

import pytest

from agentrl_envs.webshop.goals import Goal, shuffled
from agentrl_envs.webshop.splits import ORIGINAL_ROLES, PRODUCT_ROLES, shared_products, split_ids


@pytest.fixture(scope="module")
def goals():
    """3,000 requests: products with 1, 2, 3 ... 24 of them, ten times each."""
    made = []
    for number in range(240):
        asin = f"B{number:09d}"
        made += [Goal(f"{asin}/{n:03d}", asin, f"request {n}", (), {}, 10.0) for n in range(number % 24 + 1)]
    assert len(made) == 3000
    return {goal.id: goal for goal in shuffled(made)}


def products(goals, ids):
    return {goals[id].asin for id in ids}


def test_no_product_is_both_trained_on_and_unseen(goals):
    splits = split_ids(goals, "product")
    trained = products(goals, splits["train"]) | products(goals, splits["train_1024"])
    assert trained & products(goals, splits["unseen_products"]) == set()
    assert shared_products(goals, splits["unseen_products"], splits["train"])[0] == 0


def test_requests_for_seen_products_are_not_trained_on_but_their_products_are(goals):
    splits = split_ids(goals, "product")
    assert set(splits["seen_products"]) & set(splits["train"]) == set()
    assert products(goals, splits["seen_products"]) <= products(goals, splits["train"])


def test_a_request_that_stands_twice_under_two_ids_is_not_both_trained_on_and_evaluated(goals):
    twins = {f"{id}/twin": replace(goal, id=f"{id}/twin") for id, goal in goals.items()}
    splits = split_ids(goals | twins, "product")
    evaluated, trained = ({id.removesuffix("/twin") for id in splits[name]} for name in ("seen_products", "train"))
    assert len(evaluated) > 20
    assert evaluated & trained == set()


def test_about_a_third_of_the_products_is_unseen_and_none_has_more_than_four_evaluations(goals):
    splits = split_ids(goals, "product")
    unseen = [goals[id].asin for id in splits["unseen_products"]]
    assert 0.2 < len(set(unseen)) / 240 < 0.4
    assert max(unseen.count(asin) for asin in set(unseen)) == 4
    assert len(products(goals, splits["train"]) | set(unseen)) == 240


def test_the_original_cuts_500_and_1000_requests_by_position(goals):
    splits = split_ids(goals, "original")
    order = list(goals)
    assert splits["test"] == sorted(order[:500])
    assert splits["dev"] == sorted(order[500:1500])
    assert splits["train"] == sorted(order[1500:])


def test_the_original_leaks_products(goals):
    splits = split_ids(goals, "original")
    shared, num = shared_products(goals, splits["test"], splits["train"])
    assert shared == len(products(goals, splits["test"]) & products(goals, splits["train"])) > num / 2


@pytest.mark.parametrize(("by", "roles"), [("product", PRODUCT_ROLES), ("original", ORIGINAL_ROLES)])
def test_splits_are_sorted_and_the_subset_has_1024_requests_of_training(goals, by, roles):
    splits = split_ids(goals, by)
    assert list(splits) == list(roles)
    assert all(ids == sorted(set(ids)) for ids in splits.values())
    assert len(splits["train_1024"]) == 1024
    assert set(splits["train_1024"]) < set(splits["train"])


def test_splits_do_not_depend_on_the_order_of_the_files(goals):
    backwards = dict(reversed(goals.items()))
    assert split_ids(backwards, "product") == split_ids(goals, "product")
