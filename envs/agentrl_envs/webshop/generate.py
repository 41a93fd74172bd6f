"""Catalogues in WebShop's own file format, made up: deterministic, of any size, with words of our own."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from agentrl.errors import EnvError
from agentrl_envs.webshop.catalogue import CATEGORY_SEPARATOR
from agentrl_envs.webshop.words import BRANDS, DEPARTMENTS, OPENERS, STYLES, SYLLABLES, Department, Kind

MAX_PRODUCTS = 1_000_000
_ASIN_STEP = 618_033
"""Coprime to MAX_PRODUCTS, so that unlike ids follow each other and none comes twice."""


@dataclass(frozen=True)
class Knobs:
    """The size of a generated catalogue."""

    num_products: int = 1000
    catalogue_seed: int = 0
    max_values: int = 4
    """Values of an option."""
    wanted_percent: int = 60
    """Products out of 100 that somebody asks for."""

    def __post_init__(self) -> None:
        """Refuses what no catalogue can have."""
        bounds = {"num_products": MAX_PRODUCTS, "max_values": 5, "wanted_percent": 100}
        for name, most in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= most:
                raise EnvError(f"agentrl/WebShop-v0: {name} is {value!r}; it must be a whole number from 1 to {most:,}")


@dataclass(frozen=True)
class GeneratedFiles:
    """What WebShop's three files hold."""

    items: list[dict[str, Any]]
    """items_shuffle.json"""
    attributes: dict[str, dict[str, Any]]
    """items_ins_v2.json"""
    human: dict[str, list[dict[str, Any]]]
    """items_human_ins.json"""


def generate(knobs: Knobs) -> GeneratedFiles:
    """Makes a catalogue; equal knobs give equal files, and a larger one starts with the products of a smaller one."""
    files = GeneratedFiles([], {}, {})
    for number in range(knobs.num_products):
        rng = Random(f"{knobs.catalogue_seed} {number}")
        department = rng.choice(DEPARTMENTS)
        kind = rng.choice(department.kinds)
        asin = _asin(number)
        has = rng.sample(department.attributes, rng.randint(3, 5))
        item = _item(asin, department, kind, has, rng, knobs)
        files.items.append(item)
        files.attributes[asin] = {"attributes": has}
        if rng.randrange(100) < knobs.wanted_percent:
            asked = has[: rng.randint(2, 3)]
            files.attributes[asin] |= {"instruction": _instruction(kind, asked), "instruction_attributes": asked}
            if rng.random() < 0.2:
                files.human[asin] = [_human(asin, kind, asked, item["customization_options"], rng)]
    return files


def _asin(number: int) -> str:
    """Gives the id of a product: B0 and three syllables out of 100 each, such as B0LUNKERTA."""
    scattered = (number + 1) * _ASIN_STEP % MAX_PRODUCTS
    first, second, third = (SYLLABLES[scattered // unit % len(SYLLABLES)] for unit in (10_000, 100, 1))
    return f"B0{first}n{second}r{third}".upper()


def _item(asin: str, department: Department, kind: Kind, has: list[str], rng: Random, knobs: Knobs) -> dict[str, Any]:
    brand, style = rng.choice(BRANDS), rng.choice(STYLES)
    price = rng.uniform(*kind.prices)
    path = [department.root, *kind.path.split(" / ")]
    return {
        "asin": asin,
        "name": f"{brand} {style.capitalize()} {kind.noun}, {has[0].title()}, {has[1].title()}",
        "full_description": f"{rng.choice(OPENERS)} This {style} {kind.noun.lower()} is {', '.join(has)}.",
        "small_description": [f"{attribute.capitalize()} for your comfort" for attribute in has],
        "pricing": f"${price:.2f} - ${price * rng.uniform(1.05, 1.5):.2f}" if rng.random() < 0.1 else f"${price:.2f}",
        "category": department.category,
        "query": kind.query,
        "product_category": f" {CATEGORY_SEPARATOR} ".join(path),
        "customization_options": _options(kind, rng, knobs.max_values),
        "images": [],
        "average_rating": "",
        "page": 1,
    }


def _options(kind: Kind, rng: Random, max_values: int) -> dict[str, list[dict[str, str]]]:
    """Some products have no options; the others have every option of their kind, with a few values of each."""
    if rng.random() < 0.2:
        return {}
    chosen = {name: rng.sample(list(values), min(max_values, len(values))) for name, values in kind.options.items()}
    return {
        name.capitalize(): [{"value": value} for value in values if value in chosen[name]]
        for name, values in kind.options.items()
    }


def _instruction(kind: Kind, attributes: list[str]) -> str:
    first, *rest = attributes
    with_rest = f" with {', '.join(rest)}" if rest else ""
    return f"Find me {first} {kind.query}{with_rest}"


def _human(asin: str, kind: Kind, asked: list[str], options: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    values = [rng.choice(choices)["value"] for choices in options.values()]
    wish = f" I would like {' and '.join(values)}." if values else ""
    return {
        "asin": asin,
        "instruction": f"I need {kind.query} with {' and '.join(asked)}.{wish}",
        "instruction_attributes": asked,
        "instruction_options": values,
    }
