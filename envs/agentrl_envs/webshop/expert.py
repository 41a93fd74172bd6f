"""A shopper that knows how requests are worded and how the shop works, but sees only what a policy sees.

It searches with the words of the request, opens affordable products in the order of the results, leaves those that lack
an option that is asked for, chooses the options and buys.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentrl_envs.webshop.pages import SEPARATOR

_PRICE_LIMIT = re.compile(r",? and price lower than ([0-9.]+) dollars$")
_PRICE = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_RESULTS = re.compile(r"Page \d+ \(Total results: \d+\)")
_MAX_OPENED = 5
"""Products that it looks at before it takes the one that fits best."""


@dataclass(frozen=True)
class Request:
    """What a request says."""

    query: str
    """What to search with: the request but for its first words and the price."""
    options: tuple[str, ...]
    """Values that are asked for."""
    price_limit: float
    """In dollars."""

    @classmethod
    def read(cls, text: str) -> "Request":
        """Reads "Find me A, B things with C with color: x, and size: y, and price lower than 30.00 dollars"."""
        found = _PRICE_LIMIT.search(text)
        wish = text[: found.start()] if found else text
        _, *parts = wish.split(": ")
        values = tuple(part.rpartition(", and ")[0] for part in parts[:-1]) + tuple(parts[-1:])
        return cls(wish.removeprefix("Find me "), values, float(found[1]) if found else float("inf"))


@dataclass(frozen=True)
class Listed:
    """A product on a page of results."""

    asin: str
    title: str
    price: float


class Shopper:
    """Call it with every observation and its info; it gives the next action. One instance plays one episode.

    A share `noise` of its actions is drawn from the admissible ones at random, which it notices and works around.
    """

    def __init__(self, seed: int, noise: float = 0.0) -> None:
        self._rng = random.Random(seed)
        self._noise = noise
        self._request: Request | None = None
        self._left: dict[str, int] = {}
        self._open = ""
        self._chosen: set[str] = set()

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        """Gives the next action."""
        if self._request is None:
            self._request = Request.read(info["task"])
        names = [action[len("click[") : -1] for action in info["admissible_actions"] if action.startswith("click[")]
        wish = self._wish(self._request, observation, names)
        action = self._rng.choice(info["admissible_actions"]) if self._rng.random() < self._noise else wish
        self._remember(action)
        return action

    def _wish(self, request: Request, observation: str, names: Sequence[str]) -> str:
        if "buy now" in names:
            return self._on_item(request, names)
        if _RESULTS.search(observation):
            return self._on_results(request, observation)
        return "click[< prev]" if "< prev" in names else f"search[{request.query}]"

    def _on_results(self, request: Request, observation: str) -> str:
        products = [one for one in _listed(observation) if one.price <= request.price_limit]
        fresh = [one for one in products if one.asin not in self._left]
        if fresh and len(self._left) < _MAX_OPENED:
            return f"click[{fresh[0].asin}]"
        known = [one.asin for one in _listed(observation) if one.asin in self._left]
        if known:
            return f"click[{min(known, key=lambda asin: self._left[asin])}]"
        return f"search[{request.query}]"

    def _on_item(self, request: Request, names: Sequence[str]) -> str:
        lacking = [value for value in request.options if value not in names]
        if lacking and self._open not in self._left and len(self._left) < _MAX_OPENED:
            self._left[self._open] = len(lacking)
            return "click[< prev]"
        missing = [value for value in request.options if value in names and value not in self._chosen]
        return f"click[{missing[0]}]" if missing else "click[buy now]"

    def _remember(self, action: str) -> None:
        """Keeps what texts do not show: which product is open and what was chosen for it."""
        name = action[len("click[") : -1]
        if action.startswith("search[") or name in ("< prev", "back to search"):
            self._chosen.clear()
        elif re.fullmatch("b[0-9a-z]{9}", name):
            self._open = name
            self._chosen.clear()
        else:
            self._chosen.add(name)


def _listed(observation: str) -> list[Listed]:
    """Reads the products off a page of results: asin, title and price stand one after the other."""
    parts = observation.split(SEPARATOR)
    start = next(number for number, part in enumerate(parts) if _RESULTS.fullmatch(part)) + 1
    while parts[start : start + 1] and parts[start] in ("< Prev", "Next >"):
        start += 1
    triples = zip(parts[start::3], parts[start + 1 :: 3], parts[start + 2 :: 3], strict=False)
    return [Listed(asin.lower(), title, float(_PRICE.findall(price)[0])) for asin, title, price in triples]
