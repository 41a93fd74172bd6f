"""How well a purchase answers a request: WebShop's reward, from 0 to 1, and its parts.

    reward = r_type * (matching attributes + matching options + [price within limit]) / (attributes + options + 1)

Yao et al., WebShop, NeurIPS 2022, section 3 and appendix; the quirks of the released code are kept (`option_match`
mends one of them).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rapidfuzz.fuzz import token_set_ratio
from rapidfuzz.utils import default_process

from agentrl_envs.webshop.catalogue import CATEGORY_SEPARATOR, Product
from agentrl_envs.webshop.goals import Goal

OptionMatch = Literal["original", "fixed"]
"""`original` compares a request's (name, value) with a bought value and puts colors in plain words on one side only, so
that 458 of the 6,910 requests for the 1,000 products cannot reach 1; `fixed` compares values, both in plain words."""

MATCHES_ABOVE = 85
"""The similarity, of 100, above which texts count as the same."""

_COLOR_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
    caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream
    crystal  dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather
    indigo  ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha
    multicolor  mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal
    rust sand  sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise
    violet walnut  wheat white wine yellow
"""
_COLORS = tuple(_COLOR_WORDS.split())
_COMMON = """
    a an and as at by for from in into of off on or out over per plus the to up with without non all any each more
    most  set new easy best great soft
"""
_COMMON_WORDS = frozenset(_COMMON.split())
_WORD = re.compile(r"[a-z][a-z0-9]*")
_LATIN_1 = {code: None for code in range(0x80, 0x100)}


@dataclass(frozen=True, slots=True)
class Score:
    """The reward of a purchase and what it is made of."""

    reward: float
    """0 to 1."""
    r_type: float
    """Whether it is the right kind of product: 1, 0.5, 0.1 or 0."""
    r_attribute: float | None
    """Share of the wanted attributes that it has; None when none are wanted."""
    r_option: float | None
    """Share of the wanted options that were chosen; None when none are wanted."""
    r_price: bool
    """Whether the price is within the limit."""
    query_match: bool
    category_match: bool
    title_score: float
    """Share of the wanted title's nouns that its title has."""
    num_attributes: int
    num_options: int

    def parts(self) -> dict[str, float]:
        """Gives the parts that vary, for `info`."""
        shares = {"r_attribute": self.r_attribute, "r_option": self.r_option}
        known = {name: value for name, value in shares.items() if value is not None}
        return {"r_type": self.r_type, "r_price": float(self.r_price), **known}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the reward knows of the product that is asked for."""

    query: str
    product_category: str
    nouns: Sequence[str]


def score(
    goal: Goal,
    wanted: Wanted,
    product: Product,
    *,
    nouns: Sequence[str],
    price: float,
    chosen: Iterable[str],
    option_match: OptionMatch = "original",
) -> Score:
    """Gives the score of buying a product.

    Args:
        goal: What was asked for.
        wanted: The product that the request was made of.
        product: The product that is bought.
        nouns: Of the bought product's title, lower-cased.
        price: What it costs, in dollars.
        chosen: The values of its chosen options.
        option_match: See `OptionMatch`.
    """
    query_match = product.query == wanted.query
    category_match = _share_two_parts(product.product_category, wanted.product_category)
    title_score = _title_score(nouns, wanted.nouns)
    r_type = _type_factor(title_score, query_match=query_match, category_match=category_match)
    num_attributes = sum(_has_attribute(product, attribute) for attribute in goal.attributes)
    num_options = _num_options(goal.options, tuple(chosen), option_match)
    r_price = price <= goal.price_upper
    num_wanted = len(goal.attributes) + len(goal.options) + 1
    return Score(
        reward=(num_attributes + num_options + r_price) / num_wanted * r_type,
        r_type=r_type,
        r_attribute=num_attributes / len(goal.attributes) if goal.attributes else None,
        r_option=num_options / len(goal.options) if goal.options else None,
        r_price=r_price,
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
        num_attributes=num_attributes,
        num_options=num_options,
    )


@lru_cache(1 << 14)
def guessed_nouns(title: str) -> tuple[str, ...]:
    """Gives what may be the nouns of a title when no tagger has read it: its words but for common ones."""
    return tuple(word for word in _WORD.findall(title.lower()) if word not in _COMMON_WORDS)


def _type_factor(title_score: float, *, query_match: bool, category_match: bool) -> float:
    """Nothing in common with the title outweighs an equal query and category, as in the released code."""
    if title_score == 0:
        return 0.0
    if title_score < 0.1:
        return 0.1
    return 1.0 if query_match or category_match or title_score > 0.2 else 0.5


def _title_score(nouns: Sequence[str], wanted: Sequence[str]) -> float:
    return len(set(nouns) & set(wanted)) / len(wanted) if wanted else 0.2


def _share_two_parts(one: str, other: str) -> bool:
    parts = [{part.strip() for part in path.split(CATEGORY_SEPARATOR)} for path in (one, other)]
    return len(parts[0] & parts[1]) >= 2


def _has_attribute(product: Product, attribute: str) -> bool:
    if any(_similar(own, attribute) for own in product.attributes):
        return True
    texts = (product.title.lower(), " ".join(product.bullets).lower(), product.description.lower())
    return any(attribute in text for text in texts)


def _num_options(wanted: Mapping[str, str] | Sequence[str], chosen: Sequence[str], option_match: OptionMatch) -> int:
    """Counts the wanted options that some chosen value matches."""
    bought = [plain_color(value) for value in chosen]
    if isinstance(wanted, Mapping) and option_match == "original":
        asked = [_as_the_original_reads(name, value) for name, value in wanted.items()]
    else:
        values = wanted.values() if isinstance(wanted, Mapping) else wanted
        asked = [plain_color(value) for value in values]
    return sum(any(_similar(value, one) for value in bought) for one in asked)


def _as_the_original_reads(name: str, value: str) -> str:
    """The tuple (name, value): a color only if either is just that color, else its Python text."""
    return next((color for color in _COLORS if color in (name, value)), str((name, value)))


def plain_color(text: str) -> str:
    """Gives the first color that occurs anywhere in a text, in alphabetical order, or the text itself."""
    return next((color for color in _COLORS if color in text), text)


@lru_cache(1 << 16)
def _similar(one: str, other: str) -> bool:
    """Whether the words of two texts are nearly the same set, as thefuzz 0.22's token_set_ratio says."""
    ready = [default_process(text.translate(_LATIN_1)) for text in (one, other)]
    return round(token_set_ratio(*ready)) > MATCHES_ABOVE
