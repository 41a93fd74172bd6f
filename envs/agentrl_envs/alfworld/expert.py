"""A player of ALFWorld that searches: it knows the rules of the game, and of this house only what it has been told.

Walkthroughs know where everything is and so teach guessing. This expert reads the same texts as a policy, goes through
the receptacles in random order, remembers what it saw, and does what the goal asks once it holds the object.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_GOALS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("light", r"look at (\w+) under the (\w+)|examine the (\w+) with the (\w+)"),
        ("two", r"put two (\w+) in (\w+)|find two (\w+) and put them in (\w+)"),
        ("clean", r"put a clean (\w+) in (\w+)|clean some (\w+) and put it in (\w+)"),
        ("heat", r"put a hot (\w+) in (\w+)|heat some (\w+) and put it in (\w+)"),
        ("cool", r"put a cool (\w+) in (\w+)|cool some (\w+) and put it in (\w+)"),
        ("place", r"put (?:a|some) (\w+) (?:in|on) (\w+)"),
    )
)
"""Kind of goal and the two sentences that ask for it: the thing comes first, then the place or the lamp."""

_NAME = re.compile(r"\ban? (\w+ \d+)")
_CONTENT = re.compile(r"(?:On the|The) (\w+ \d+)(?: is open\. In it)?, you see ([^.]*)\.")
_CLOSED = re.compile(r"The (\w+ \d+) is closed\.")
_PICKED = re.compile(r"You pick up the (\w+ \d+) from the (\w+ \d+)\.")
_MOVED = re.compile(r"You (?:move|put) the (\w+ \d+) (?:to|in/on) the (\w+ \d+)\.")
_TREATED = re.compile(r"You (?:clean|heat|cool) the (\w+ \d+) using")
_STATIONS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}


@dataclass(frozen=True)
class Goal:
    """What the task sentence asks for."""

    kind: str
    thing: str
    place: str

    @classmethod
    def read(cls, text: str) -> "Goal":
        """Reads the sentence "Your task is to: ..." in any of ALFWorld's twelve forms."""
        sentence = text.rsplit("Your task is to:", 1)[-1].strip().lower()
        for kind, pattern in _GOALS:
            if match := pattern.match(sentence):
                thing, place = (word for word in match.groups() if word)
                return cls(kind, thing, place)
        raise ValueError(f"not one of ALFWorld's task sentences: {sentence!r}")


class SearchingExpert:
    """Call it with every observation and its info; it gives the next action. One instance plays one episode.

    A share `noise` of its actions is drawn from the admissible ones at random, which it notices and works around.
    """

    def __init__(self, seed: int, noise: float = 0.0) -> None:
        self._rng = random.Random(seed)
        self._noise = noise
        self._goal: Goal | None = None
        self._to_search: list[str] = []
        self._receptacles: list[str] = []
        self._seen: dict[str, str] = {}
        self._held = ""
        self._treated: set[str] = set()
        self._done: dict[str, str] = {}

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        """Gives the next action."""
        if self._goal is None:
            self._goal = Goal.read(observation)
            self._receptacles = _NAME.findall(observation.rsplit("Your task is to:", 1)[0])
            self._to_search = self._rng.sample(self._receptacles, len(self._receptacles))
        else:
            self._read(observation)
        admissible = [action for action in info["admissible_actions"] if action != "help"]
        if self._rng.random() < self._noise:
            return self._rng.choice(admissible)
        allowed = set(admissible)
        return next((action for action in self._wishes(self._goal, admissible) if action in allowed), "look")

    def _read(self, text: str) -> None:
        for place, content in _CONTENT.findall(text):
            names = _NAME.findall(content)
            elsewhere = {name: at for name, at in self._seen.items() if at != place}
            self._seen = elsewhere | {name: place for name in names}
            if place in self._to_search:
                self._to_search.remove(place)
        if match := _PICKED.search(text):
            self._held = match[1]
            self._seen.pop(match[1], None)
            self._done.pop(match[1], None)
        if match := _MOVED.search(text):
            self._held = ""
            self._seen[match[1]] = match[2]
            if self._goal and self._wanted(match[1]) and _kind(match[2]) == self._goal.place and self._ready(match[1]):
                self._done[match[1]] = match[2]
        if match := _TREATED.search(text):
            self._treated.add(match[1])

    def _wanted(self, name: str) -> bool:
        return self._goal is not None and _kind(name) == self._goal.thing

    def _ready(self, name: str) -> bool:
        return self._goal is not None and (self._goal.kind not in _STATIONS or name in self._treated)

    def _wishes(self, goal: Goal, admissible: list[str]) -> Iterator[str]:
        """Gives what it would like to do, best first; the first that is admissible is done."""
        if not self._held:
            for name, place in self._seen.items():
                if self._wanted(name) and name not in self._done:
                    yield f"take {name} from {place}"
                    yield from self._go(place)
            yield from self._search(admissible)
        elif not self._wanted(self._held):
            yield from (action for action in admissible if action.startswith("move "))
            yield from self._visit(self._receptacles)
        elif goal.kind == "light":
            yield from (action for action in admissible if action.startswith(f"use {goal.place} "))
            yield from self._visit([place for name, place in self._seen.items() if _kind(name) == goal.place])
            yield from self._search(admissible)
        elif not self._ready(self._held):
            yield from (action for action in admissible if action.startswith(f"{goal.kind} {self._held} "))
            yield from self._visit(self._of_kind(_STATIONS[goal.kind]))
        else:
            targets = list(self._done.values())[:1] or self._of_kind(goal.place)
            yield from (f"move {self._held} to {place}" for place in targets)
            yield from self._visit(targets)

    def _search(self, admissible: list[str]) -> Iterator[str]:
        here = {action.removeprefix("examine ") for action in admissible if action.startswith("examine ")}
        for place in self._to_search:
            if place in here:
                yield f"open {place}"
                yield f"examine {place}"
        yield from self._visit(self._to_search)
        yield from self._visit(self._rng.sample(self._receptacles, len(self._receptacles)))

    def _visit(self, places: list[str]) -> Iterator[str]:
        for place in places:
            yield from self._go(place)

    def _go(self, place: str) -> Iterator[str]:
        yield f"open {place}"
        yield f"go to {place}"

    def _of_kind(self, kind: str) -> list[str]:
        return sorted(place for place in self._receptacles if _kind(place) == kind)


def _kind(name: str) -> str:
    return name.rsplit(" ", 1)[0]
