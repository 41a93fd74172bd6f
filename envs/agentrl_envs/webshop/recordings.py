"""Records of the original, and how this shop differs from them: rewards, goals, terms and searches.

Each comparison gives an entry for every record: its differences, none when all is equal.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentrl_envs.webshop.analyzer import tokens
from agentrl_envs.webshop.catalogue import Product
from agentrl_envs.webshop.files import Requests
from agentrl_envs.webshop.goals import Goal, goals_sha256
from agentrl_envs.webshop.reward import Score, Wanted, score
from agentrl_envs.webshop.shop import Shop

Record = Mapping[str, Any]
Differences = list[str]
Shops = Callable[[Requests], Shop]
"""Gives the shop of the real products, with seed 0."""
SCORE_TOLERANCE = 1e-4
"""Of a search score; records have four decimals."""


def differences(where: str, recorded: Record, ours: Record) -> Differences:
    """Gives a line for each key of a record whose value is not ours."""
    return [
        f"{where}: {key}\n  recorded {recorded[key]!r}\n  ours     {value!r}"
        for key, value in ours.items()
        if key in recorded and recorded[key] != value
    ]


def read_goal(record: Record) -> Goal:
    """Gives a goal as the original wrote it down."""
    options = record["goal_options"]
    return Goal(
        id="recorded",
        asin=record.get("asin", ""),
        instruction=record.get("instruction_text", ""),
        attributes=tuple(record["attributes"]),
        options=options if isinstance(options, Mapping) else tuple(options),
        price_upper=record["price_upper"],
    )


def write_goal(goal: Goal) -> dict[str, Any]:
    """Gives a goal in the original's words."""
    return {
        "asin": goal.asin,
        "instruction_text": goal.instruction,
        "attributes": list(goal.attributes),
        "goal_options": dict(goal.options) if isinstance(goal.options, Mapping) else list(goal.options),
        "price_upper": goal.price_upper,
        "weight": goal.weight,
    }


def compare_rewards(content: Record, shops: Shops) -> Iterator[Differences]:
    """Compares scores: of products that the record describes, or names by asin."""
    for number, case in enumerate(content["cases"]):
        goal = read_goal(case["goal"])
        found = _score_by_asin(case, goal, shops("synthetic")) if "asin" in case else _score(case, goal)
        where = f"case {number}, {case.get('note') or case.get('asin')}"
        counts = {"num_attr_matches": found.num_attributes, "num_option_matches": found.num_options}
        told = differences(where, case, {"reward": found.reward, **counts})
        yield told + differences(where, case["info"], _info(found, goal))


def _score_by_asin(case: Record, goal: Goal, shop: Shop) -> Score:
    product, wanted = (shop.catalogue.products[asin] for asin in (case["asin"], goal.asin))
    return score(
        goal,
        Wanted(wanted.query, wanted.product_category, shop.nouns(wanted.asin)),
        product,
        nouns=shop.nouns(product.asin),
        price=case["price"],
        chosen=case["options"].values(),
    )


def _score(case: Record, goal: Goal) -> Score:
    about, wanted = case["product"], case["goal"]
    product = Product(
        asin="",
        title=about["Title"],
        query=about["query"],
        category="",
        product_category=about["product_category"],
        pricing=(case["price"],),
        description=about["Description"],
        bullets=tuple(about["BulletPoints"]),
        options={},
        attributes=tuple(about["Attributes"]),
    )
    return score(
        goal,
        Wanted(wanted["query"], wanted["product_category"], case["goal_nouns"]),
        product,
        nouns=case["product_nouns"],
        price=case["price"],
        chosen=case["options"].values(),
    )


def _info(found: Score, goal: Goal) -> dict[str, Any]:
    """Gives the parts under the names of the original, which also tells what share of the reward each decides."""
    num_wanted = len(goal.attributes) + len(goal.options) + 1
    return {
        "r_type": found.r_type,
        "r_att": found.r_attribute,
        "w_att": len(goal.attributes) / num_wanted,
        "r_option": found.r_option,
        "w_option": len(goal.options) / num_wanted,
        "r_price": found.r_price,
        "w_price": 1 / num_wanted,
        "query_match": found.query_match,
        "category_match": found.category_match,
        "title_score": found.title_score,
    }


def compare_goals(content: Record, shops: Shops) -> Iterator[Differences]:
    """Compares the goals that are made of the real products with seed 0, the hash of all, and the drawn prices."""
    synthetic, human = (list(shops(kind).goals.values()) for kind in ("synthetic", "human"))
    found = {"n_synthetic": len(synthetic), "sha256_all": goals_sha256(synthetic)}
    yield differences("all synthetic goals", content["meta"], found)
    for key, records in content.items():
        if key in ("meta", "prices"):
            continue
        goals = human if key.startswith("human") else synthetic
        for number, record in enumerate(records):
            ours = write_goal(goals[number]) if number < len(goals) else dict.fromkeys(record)
            yield differences(f"{key} {number}", record, ours)
    prices = shops("synthetic").catalogue.prices
    for asin, price in content.get("prices", {}).items():
        yield differences(f"price of {asin}", {"price": price}, {"price": prices.get(asin)})


def compare_searches(content: Record, shops: Shops) -> Iterator[Differences]:
    """Compares the terms of texts, and the ids and scores that queries find."""
    for case in content.get("analysis", []):
        yield differences(f"terms of {case['text']!r}", case, {"tokens": tokens(case["text"])})
    limit = content.get("meta", {}).get("k", 50)
    for case in content.get("search", []):
        found = shops("synthetic").index.search(case["query"], limit)
        where = f"search {case['query']!r}"
        recorded = {"ids": [id for id, _ in case["hits"]]}
        told = differences(where, recorded, {"ids": [id for id, _ in found]})
        pairs = zip(case["hits"], found, strict=False)
        wrong = [(id, score, ours) for (id, score), (_, ours) in pairs if abs(score - ours) > SCORE_TOLERANCE]
        yield told or [f"{where}: score of {id}\n  recorded {score}\n  ours     {ours}" for id, score, ours in wrong]
