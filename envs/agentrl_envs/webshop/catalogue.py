"""Products as the shop shows them, read from WebShop's files: one frozen catalogue for any number of sessions."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from agentrl.errors import DataError

log = logging.getLogger(__name__)

MAX_ASIN_CHARS = 10
CATEGORY_SEPARATOR = "\u203a"
NO_PRICE = (100.0,)
"""What a product without a price costs, in dollars."""
NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""What the original gives a product that the attribute file does not name."""
_SHOWN = 5
_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")


@dataclass(frozen=True, slots=True)
class HumanRequest:
    """A request that a person wrote."""

    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    """Values, without their names."""


@dataclass(frozen=True, slots=True)
class Product:
    """One product."""

    asin: str
    title: str
    query: str
    """What kind of product it is: the search that found it, lower-cased."""
    category: str
    product_category: str
    """Path in the shop's tree, parts joined by CATEGORY_SEPARATOR."""
    pricing: tuple[float, ...]
    """A price in dollars, or the two ends of a range."""
    description: str
    bullets: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    """Lower-cased name -> lower-cased values."""
    attributes: tuple[str, ...]
    instruction: str | None = None
    """The request that goals are made of; None for products nobody is sent for."""
    instruction_attributes: tuple[str, ...] = ()
    human: tuple[HumanRequest, ...] = ()
    """Requests for it that people wrote."""

    @property
    def price_tag(self) -> str:
        """The price as pages show it."""
        return " to ".join(f"${price}" for price in self.pricing)

    @property
    def text(self) -> str:
        """What the search engine indexes: title, description, first bullet and options."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.title, self.description, self.bullets[0] if self.bullets else "", options]).lower()


@dataclass(frozen=True)
class Catalogue:
    """Products in the order of their file, and what each costs."""

    products: Mapping[str, Product]
    """Asin -> product."""
    prices: Mapping[str, float]
    """Asin -> the price that is charged, in dollars: somewhere in the range that the page shows."""
    nouns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Asin -> the nouns of the title, lower-cased, as a tagger found them; may lack products, see `reward.nouns`."""

    @classmethod
    def of(
        cls,
        products: Sequence[Product],
        rng: Random,
        nouns: Mapping[str, Sequence[str]] | None = None,
    ) -> "Catalogue":
        """Draws the prices of products that cost "from ... to ...", in their order."""
        prices = {one.asin: one.pricing[0] if len(one.pricing) == 1 else rng.uniform(*one.pricing) for one in products}
        known = {asin: tuple(words) for asin, words in (nouns or {}).items()}
        return cls({one.asin: one for one in products}, prices, known)


def read_products(
    items: Any, attributes: Any, human: Any = None, *, where: str = "items_shuffle.json"
) -> list[Product]:
    """Gives the products of WebShop's files: a list of items, attributes by asin and, if there are, requests by asin.

    As in the original, items without an asin ("nan"), with one of more than 10 characters or one that came before are
    left out; how many is logged.

    Raises:
        DataError: An item is not what it should be; the message names the first five such.
    """
    if not isinstance(items, list) or not isinstance(attributes, Mapping) or not isinstance(human or {}, Mapping):
        raise DataError(f"{where}: want a list of products, and attributes and requests as objects by asin")
    products: dict[str, Product] = {}
    problems: list[str] = []
    num_left_out = 0
    for number, item in enumerate(items):
        asin = item.get("asin") if isinstance(item, Mapping) else None
        if not isinstance(asin, str) or not asin:
            problems.append(f"product {number}: has no asin")
        elif asin == "nan" or len(asin) > MAX_ASIN_CHARS or asin in products:
            num_left_out += 1
        else:
            try:
                products[asin] = _product(item, attributes.get(asin) or {}, (human or {}).get(asin) or ())
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                problems.append(f"product {number} ({asin}): {_told(error)}")
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise DataError(f"{where}: {'; '.join(problems[:_SHOWN])}{more}; mend or remove these products")
    if not products:
        raise DataError(f"{where}: no products in it; make some with scripts/make_webshop.py")
    if num_left_out:
        log.warning("%s: left out %d products whose asin is nan, too long or taken", where, num_left_out)
    return list(products.values())


def _product(item: Mapping[str, Any], about: Mapping[str, Any], human: Sequence[Mapping[str, Any]]) -> Product:
    bullets = item.get("small_description", "")
    return Product(
        asin=item["asin"],
        title=_text(item, "name"),
        query=_text(item, "query").lower().strip(),
        category=_text(item, "category"),
        product_category=_text(item, "product_category"),
        pricing=_pricing(item.get("pricing")),
        description=_text(item, "full_description"),
        bullets=_texts(bullets if isinstance(bullets, list) else [bullets], "small_description"),
        options=_options(item.get("customization_options")),
        attributes=_texts(about.get("attributes", NO_ATTRIBUTES), "attributes"),
        instruction=_text(about, "instruction") or None,
        instruction_attributes=_texts(about.get("instruction_attributes", ()), "instruction_attributes"),
        human=tuple(map(_human, human)),
    )


def _human(entry: Mapping[str, Any]) -> HumanRequest:
    wanted = (_texts(entry[key], key) for key in ("instruction_attributes", "instruction_options"))
    return HumanRequest(_text(entry, "instruction"), *wanted)


def _text(item: Mapping[str, Any], key: str) -> str:
    value = item.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} is {type(value).__name__}, not text")
    return value


def _texts(values: Any, key: str) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{key} is not a list of texts")
    return tuple(values)


def _pricing(text: Any) -> tuple[float, ...]:
    """Reads "$19.99 - $24.99"; of several prices the first two count."""
    if not text:
        return NO_PRICE
    if not isinstance(text, str):
        raise TypeError(f"pricing is {type(text).__name__}, not text")
    amounts = [re.sub(r"[^0-9.]", "", part) for part in text.split("$")[1:]]
    if not amounts or not all(_AMOUNT.fullmatch(amount) for amount in amounts):
        raise ValueError(f"pricing {text!r} is no price in dollars")
    return tuple(map(float, amounts[:2]))


def _options(given: Any) -> Mapping[str, tuple[str, ...]]:
    """Reads {"Color": [{"value": "Black/White"}, ...]}; a name without values is left out."""
    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"customization_options is {type(given).__name__}, not an object")
    return {
        name.lower(): tuple(choice["value"].strip().replace("/", " | ").lower() for choice in choices)
        for name, choices in given.items()
        if choices is not None
    }


def _told(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
