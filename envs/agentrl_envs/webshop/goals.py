"""What a customer asks for: a request in words, and what a purchase is measured by."""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agentrl_envs.webshop.catalogue import Catalogue, Product

PRICE_STEPS = tuple(10.0 * number for number in range(1, 100))
"""Limits that a request may name, in dollars."""
NO_LIMIT = 1_000_000
SHUFFLE_SEED = 233
"""The original's, which its splits by position rest on."""
_NEAREST_STEPS = 4


@dataclass(frozen=True, slots=True)
class Goal:
    """One request."""

    id: str
    """The product's asin and the number of the request among the product's, e.g. B0743JKHBV/003."""
    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: Mapping[str, str] | tuple[str, ...]
    """By name for generated requests, bare values for those that people wrote; the reward tells them apart."""
    price_upper: float
    """The most it may cost, in dollars."""
    weight: float = 1.0
    """How often the original draws it, relatively."""

    def record(self) -> list[Any]:
        """Gives what identifies the goal, as hashes take it."""
        options = dict(self.options) if isinstance(self.options, Mapping) else list(self.options)
        return [self.asin, options, self.price_upper, self.instruction]


def synthetic_goals(catalogue: Catalogue, rng: Random) -> list[Goal]:
    """Gives a request for every combination of options of every product that has an instruction, unshuffled."""
    goals: list[Goal] = []
    for product in catalogue.products.values():
        if product.instruction is None:
            continue
        price_upper, price_text = _price_limit(catalogue.prices[product.asin], rng)
        for number, options in enumerate(_combinations(product)):
            wanted = ", and ".join(f"{name}: {value}" for name, value in options.items())
            text = f"{product.instruction} with {wanted}{price_text}" if wanted else product.instruction + price_text
            id = f"{product.asin}/{number:03d}"
            goals.append(Goal(id, product.asin, text, product.instruction_attributes, options, price_upper))
    return _weighted(goals)


def human_goals(catalogue: Catalogue, rng: Random) -> list[Goal]:
    """Gives the requests that people wrote, unshuffled; those that name no attribute are none, as in the original."""
    goals: list[Goal] = []
    for product in catalogue.products.values():
        for number, request in enumerate(product.human):
            if request.attributes:
                price_upper, price_text = _price_limit(catalogue.prices[product.asin], rng)
                text = request.instruction.strip(".") + price_text
                id = f"{product.asin}/human{number:03d}"
                goals.append(Goal(id, product.asin, text, request.attributes, request.options, price_upper))
    return goals


def shuffled(goals: Sequence[Goal]) -> list[Goal]:
    """Gives goals in the original's order, in which its splits are cut."""
    order = list(goals)
    Random(SHUFFLE_SEED).shuffle(order)
    return order


def goals_sha256(goals: Iterable[Goal]) -> str:
    """Gives the hash of a list of goals: asin, options, price limit and text of each."""
    records = [goal.record() for goal in goals]
    return hashlib.sha256(json.dumps(records, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _combinations(product: Product) -> Iterable[dict[str, str]]:
    names = sorted(product.options)
    for values in itertools.product(*(product.options[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def _price_limit(price: float, rng: Random) -> tuple[float, str]:
    """Draws a limit above a price, and the words for it; products above 970 dollars have none."""
    steps = [step for step in PRICE_STEPS if step > price][:_NEAREST_STEPS]
    if len(steps) < 2:
        return NO_LIMIT, ""
    limit = sorted(rng.sample(steps, 2))[1]
    return limit, f", and price lower than {limit:.2f} dollars"


def _weighted(goals: Sequence[Goal]) -> list[Goal]:
    """Weighs goals by how rare their attributes are: the mean of 1 / number of goals with the attribute."""
    counts = Counter(attribute for goal in goals for attribute in goal.attributes)
    return [
        replace(goal, weight=sum(1 / counts[attribute] for attribute in goal.attributes) / max(len(goal.attributes), 1))
        for goal in goals
    ]
