"""Which requests are trained on and which are evaluated: by product, or by position as the original cuts them."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from agentrl.env import SplitRole
from agentrl_envs.webshop.goals import Goal

SplitBy = Literal["product", "original"]
"""`product`: no product of the split unseen_products is ever trained on. `original`: the first 500 requests are the
test, the next 1,000 the dev set, whatever their products."""

PRODUCT_ROLES: Mapping[str, SplitRole] = MappingProxyType(
    {
        "train": "train",
        "train_1024": "train",
        "seen_products": "in_distribution",
        "unseen_products": "out_of_distribution",
    }
)
ORIGINAL_ROLES: Mapping[str, SplitRole] = MappingProxyType(
    {"train": "train", "train_1024": "train", "dev": "in_distribution", "test": "in_distribution"}
)
"""The test shares most of its products with training, so it is in distribution."""

NUM_TEST, NUM_DEV = 500, 1000
NUM_SUBSET = 1024
"""Requests of `train_1024`: few enough to be seen several times in a run."""
UNSEEN_PERCENT = 30
"""Products out of 100 that are never trained on."""
HELD_OUT_EVERY = 10
"""One in so many requests for a training product is kept for evaluation."""
EVALUATED_PER_PRODUCT = 4
"""At most so many requests for a product are in an evaluation, or a few products with many options would decide it."""


def split_ids(goals: Mapping[str, Goal], by: SplitBy) -> dict[str, list[str]]:
    """Gives the ids of every split, sorted; `goals` are in the original's order."""
    splits = _by_product(goals) if by == "product" else _by_position(list(goals))
    splits["train_1024"] = sorted(splits["train"], key=_number)[:NUM_SUBSET]
    roles = PRODUCT_ROLES if by == "product" else ORIGINAL_ROLES
    return {split: sorted(splits[split]) for split in roles}


def shared_products(goals: Mapping[str, Goal], ids: Sequence[str], others: Sequence[str]) -> tuple[int, int]:
    """Gives how many products of `ids` are among those of `others`, and how many products `ids` have."""
    products, known = ({goals[id].asin for id in some} for some in (ids, others))
    return len(products & known), len(products)


def _by_product(goals: Mapping[str, Goal]) -> dict[str, list[str]]:
    by_asin: dict[str, list[str]] = defaultdict(list)
    for id, goal in goals.items():
        by_asin[goal.asin].append(id)
    splits: dict[str, list[str]] = {"train": [], "seen_products": [], "unseen_products": []}
    for asin, ids in by_asin.items():
        ordered = sorted(ids, key=_number)
        if _number(asin) % 100 < UNSEEN_PERCENT:
            splits["unseen_products"] += ordered[:EVALUATED_PER_PRODUCT]
            continue
        num_held_out = min(len(ordered) // HELD_OUT_EVERY, EVALUATED_PER_PRODUCT)
        held_out = ordered[:num_held_out]
        splits["seen_products"] += held_out
        splits["train"] += _unlike(goals, ordered[num_held_out:], held_out)
    return splits


def _unlike(goals: Mapping[str, Goal], ids: Sequence[str], held_out: Sequence[str]) -> list[str]:
    """Gives the ids whose request none of `held_out` repeats: a product may list the same option value twice."""
    asked = [goals[id].record() for id in held_out]
    return [id for id in ids if goals[id].record() not in asked]


def _by_position(ids: list[str]) -> dict[str, list[str]]:
    first = NUM_TEST + NUM_DEV
    return {"test": ids[:NUM_TEST], "dev": ids[NUM_TEST:first], "train": ids[first:]}


def _number(text: str) -> int:
    """Gives a number that depends on the text alone: the same order on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
