"""A shop small enough to know by heart: a shirt and a towel in colors, a lamp, and 21 mugs."""

from random import Random
from typing import Any

import pytest

from agentrl_envs.webshop.catalogue import read_products
from agentrl_envs.webshop.files import make_shop
from agentrl_envs.webshop.shop import Shop


def item(asin: str, name: str, **more: Any) -> dict[str, Any]:
    """An entry of items_shuffle.json."""
    return {"asin": asin, "name": name, "pricing": "$20.00", "query": "things", "category": "garden", **more}


def choices(*values: str) -> list[dict[str, str]]:
    """The values of an option, as the file has them."""
    return [{"value": value} for value in values]


@pytest.fixture
def items() -> list[dict[str, Any]]:
    mugs = [item(f"B00000MUG{chr(65 + number)}", f"Plain Mug {number}") for number in range(21)]
    shirt = item(
        "B0000SHIRT",
        "Acme Cotton Shirt",
        pricing="$10.00 - $19.00",
        query="Shirts",
        category="fashion",
        product_category="Clothing \u203a Men \u203a Shirts",
        full_description="Soft.",
        small_description=["Machine wash", ""],
        customization_options={"Color": choices("Navy", "Red/White"), "Size": choices("Large", "Small"), "Fit": None},
    )
    towel = item(
        "B0000TOWEL",
        "Acme Towel",
        query="Towels",
        small_description="Cotton",
        customization_options={"Color": choices("Navy")},
    )
    return [shirt, towel, item("B00000LAMP", "Bright Lamp", pricing="", query="Lamps"), *mugs]


@pytest.fixture
def attributes() -> dict[str, dict[str, Any]]:
    def wanted(instruction: str, *about: str) -> dict[str, Any]:
        return {"attributes": list(about), "instruction": instruction, "instruction_attributes": list(about)}

    return {
        "B0000SHIRT": wanted("Find me machine wash shirts", "machine wash"),
        "B0000TOWEL": wanted("Find me cotton towels", "cotton"),
    }


@pytest.fixture
def human() -> dict[str, list[dict[str, Any]]]:
    wish = {
        "instruction": "a navy shirt, please.",
        "instruction_attributes": ["machine wash"],
        "instruction_options": ["navy"],
    }
    return {"B0000SHIRT": [wish, {**wish, "instruction_attributes": []}]}


@pytest.fixture
def shop(items: list[dict[str, Any]], attributes: dict[str, Any], human: dict[str, Any]) -> Shop:
    """The shop; the shirt costs what the first draw of seed 0 gives between 10 and 19 dollars."""
    return make_shop(read_products(items, attributes, human), {})


@pytest.fixture
def shirt_price() -> float:
    return Random(0).uniform(10, 19)
