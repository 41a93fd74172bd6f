"""A shopper that knows which product is meant: it makes the best purchase, and so shows that the shop allows it."""

import re
from collections.abc import Iterator, Mapping

from agentrl_envs.webshop.goals import Goal
from agentrl_envs.webshop.reward import OptionMatch
from agentrl_envs.webshop.session import BUY, NEXT, PRODUCTS_PER_PAGE
from agentrl_envs.webshop.shop import Shop

_MAX_QUERY_CHARS = 500


def purchase(shop: Shop, goal: Goal, option_match: OptionMatch) -> Iterator[str]:
    """Gives the actions that find the product by its title, choose what is asked for and buy.

    Requests in people's own words name no values of the product; then each option gets the value that scores best.
    """
    query = " ".join(re.sub(r"[\[\]]", " ", shop.catalogue.products[goal.asin].title).lower().split())[
        :_MAX_QUERY_CHARS
    ]
    yield f"search[{query}]"
    results = shop.search(query)
    if goal.asin in results:
        yield from [f"click[{NEXT}]"] * (results.index(goal.asin) // PRODUCTS_PER_PAGE)
        yield f"click[{goal.asin.lower()}]"
        yield from (f"click[{value}]" for value in _values(shop, goal, option_match))
        yield f"click[{BUY}]"


def _values(shop: Shop, goal: Goal, option_match: OptionMatch) -> list[str]:
    if isinstance(goal.options, Mapping):
        return list(goal.options.values())
    chosen: list[str] = []
    for values in shop.catalogue.products[goal.asin].options.values():
        chosen.append(max(values, key=lambda one: shop.score(goal, goal.asin, [*chosen, one], option_match).reward))
    return chosen
