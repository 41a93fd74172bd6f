"""A shop: its catalogue, its search and its customers' requests. Frozen, and shared by all sessions of a process."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentrl_envs.webshop.catalogue import Catalogue
from agentrl_envs.webshop.goals import Goal
from agentrl_envs.webshop.reward import OptionMatch, Score, Wanted, guessed_nouns, score

MAX_RESULTS = 50
"""How many products a search finds at most."""


class Searcher(Protocol):
    """What finds products; `search.Index` is one."""

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """Gives the asins and scores of the products that a query finds, best first."""
        ...


@dataclass(frozen=True)
class Shop:
    """What all sessions have in common."""

    catalogue: Catalogue
    index: Searcher
    goals: Mapping[str, Goal]
    """Id -> request, in the original's shuffled order."""

    def search(self, query: str) -> tuple[str, ...]:
        """Gives the asins of the products that a query finds, best first, at most 50."""
        return tuple(asin for asin, _ in self.index.search(query, MAX_RESULTS))

    def score(self, goal: Goal, asin: str, chosen: Iterable[str], option_match: OptionMatch = "original") -> Score:
        """Gives the score of buying a product with the chosen option values."""
        wanted = self.catalogue.products[goal.asin]
        return score(
            goal,
            Wanted(wanted.query, wanted.product_category, self.nouns(goal.asin)),
            self.catalogue.products[asin],
            nouns=self.nouns(asin),
            price=self.catalogue.prices[asin],
            chosen=chosen,
            option_match=option_match,
        )

    def nouns(self, asin: str) -> tuple[str, ...]:
        """Gives the nouns of a product's title."""
        known = self.catalogue.nouns.get(asin)
        return guessed_nouns(self.catalogue.products[asin].title) if known is None else known

    def ceiling(self, goal: Goal, option_match: OptionMatch = "original") -> float:
        """Gives the reward of buying just what was asked for, which the original's quirks may leave below 1."""
        options = goal.options
        chosen = options.values() if isinstance(options, Mapping) else options
        return self.score(goal, goal.asin, chosen, option_match).reward
