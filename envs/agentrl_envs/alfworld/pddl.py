"""Facts and goal of an ALFWorld problem, read out of its PDDL text."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentrl.errors import DataError

_FACT = re.compile(r"\(([a-z]+)((?: +[^\s()]+)+) *\)")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem's initial facts and its goal, all in lower case, since PDDL does not tell cases apart."""

    facts: Mapping[str, Sequence[tuple[str, ...]]]
    """Predicate -> the arguments of each of its facts."""
    goal: str
    """The text from `(:goal` on."""

    @classmethod
    def parse(cls, text: str) -> "Problem":
        """Reads a problem. Raises: DataError when it lacks `(:init` or `(:goal`."""
        text = text.lower()
        init, goal = text.find("(:init"), text.find("(:goal")
        if not 0 <= init < goal:
            raise DataError("pddl_problem has no (:init ...) with a (:goal ...) after it")
        facts: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        for match in _FACT.finditer(text, init, goal):
            facts[match[1]].append(tuple(match[2].split()))
        return cls(facts, text[goal:])

    def subjects(self, predicate: str) -> frozenset[str]:
        """Gives the first argument of each fact, such as the id of everything `pickupable`."""
        return frozenset(arguments[0] for arguments in self.facts.get(predicate, ()))

    def pairs(self, predicate: str) -> list[tuple[str, str]]:
        """Gives the distinct arguments of a predicate of two, sorted."""
        return sorted({(first, second) for first, second in self.facts.get(predicate, ())})
