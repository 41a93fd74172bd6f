"""One customer's visit: which page is open, what was chosen, and what each click leads to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentrl_envs.webshop.goals import Goal
from agentrl_envs.webshop.reward import OptionMatch, Score
from agentrl_envs.webshop.shop import Shop

PageName = Literal["start", "results", "item", "sub", "done"]
PRODUCTS_PER_PAGE = 10
BACK, NEXT, PREVIOUS, BUY, SEARCH = "back to search", "next >", "< prev", "buy now", "search"
SUB_PAGES = ("description", "features", "reviews", "attributes")
_ORIGINAL_ACTION = re.compile(r"(.+)\[(.+)\]")


@dataclass(slots=True)
class Session:
    """The state of a visit, as light as it can be: the shop, which is heavy, is shared."""

    shop: Shop
    goal: Goal
    option_match: OptionMatch = "original"
    show_attributes: bool = False
    """Whether the item page has the button Attributes."""
    bounded: bool = False
    """Whether the button for the next results page is missing on the last one; the original always has it."""
    page: PageName = "start"
    query: str = ""
    results: tuple[str, ...] = ()
    number: int = 1
    """Of the results page, from 1."""
    asin: str = ""
    """The product that was opened last."""
    sub_page: str = ""
    options: dict[str, str] = field(default_factory=dict)
    """Chosen values by option name."""
    seen: set[str] = field(default_factory=set)
    """Products that were opened since the start page."""
    score: Score | None = None
    """Of the last purchase."""

    def act(self, action: str) -> bool:
        """Takes `search[...]` or `click[...]` exactly as the original reads it; gives whether it did anything."""
        found = _ORIGINAL_ACTION.match(action)
        if not found:
            return False
        verb, argument = found[1], found[2].lower()
        if verb == "search":
            self.search(argument)
            return True
        return verb == "click" and self.click(argument)

    def search(self, query: str) -> None:
        """Opens the first page of results; every page takes a search."""
        self.query = query
        self.results = self.shop.search(query)
        self._open_results(1)

    def click(self, name: str) -> bool:
        """Clicks a button, product or option by its lower-cased name; gives whether there is one that does anything."""
        if name == SEARCH or name not in self.clickables():
            return False
        if name == BACK:
            self.page = "start"
            self.options.clear()
            self.seen.clear()
        elif self.page == "results":
            self._click_on_results(name)
        elif self.page == "item":
            self._click_on_item(name)
        else:
            self.page = "item"
        return True

    def clickables(self) -> list[str]:
        """Gives the names of all that can be clicked, lower-cased, in the order of the page, each once."""
        match self.page:
            case "start":
                return [SEARCH]
            case "results":
                buttons = [BACK, *([PREVIOUS] if self.number > 1 else []), *([NEXT] if self.has_next else [])]
                return list(dict.fromkeys([*buttons, *(asin.lower() for asin in self.listed)]))
            case "item":
                values = (value for group in self._product_options.values() for value in group)
                return list(dict.fromkeys([BACK, PREVIOUS, *self.sub_pages, BUY, *values]))
            case "sub":
                return [BACK, PREVIOUS]
            case "done":
                return []

    @property
    def listed(self) -> tuple[str, ...]:
        """The asins on the open results page."""
        first = (self.number - 1) * PRODUCTS_PER_PAGE
        return self.results[first : first + PRODUCTS_PER_PAGE]

    @property
    def has_next(self) -> bool:
        """Whether the results page has the button for the next one."""
        return not self.bounded or self.number * PRODUCTS_PER_PAGE < len(self.results)

    @property
    def sub_pages(self) -> tuple[str, ...]:
        """The pages about a product that its own page leads to."""
        return SUB_PAGES if self.show_attributes else SUB_PAGES[:-1]

    @property
    def _product_options(self) -> Mapping[str, tuple[str, ...]]:
        return self.shop.catalogue.products[self.asin].options

    def _open_results(self, number: int) -> None:
        self.page, self.number = "results", number
        self.options.clear()

    def _click_on_results(self, name: str) -> None:
        if name in (NEXT, PREVIOUS):
            self._open_results(self.number + (1 if name == NEXT else -1))
            return
        self.asin = next(asin for asin in self.listed if asin.lower() == name)
        self.seen.add(self.asin)
        self.page = "item"

    def _click_on_item(self, name: str) -> None:
        if name == PREVIOUS:
            self._open_results(self.number)
        elif name == BUY:
            self.score = self.shop.score(self.goal, self.asin, self.options.values(), self.option_match)
            self.page = "done"
        elif name in SUB_PAGES:
            self.page, self.sub_page = "sub", name
        else:  # a value that two options share is taken for the last of them
            *_, option = (key for key, values in self._product_options.items() if name in values)
            self.options[option] = name
