"""An ALFWorld game: what stands and lies where at the start, and when it is won."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from agentrl.errors import DataError
from agentrl_envs.alfworld.house import FAMILIES
from agentrl_envs.alfworld.names import demangle
from agentrl_envs.alfworld.pddl import Problem

T = TypeVar("T")

TRAITS = ("pickupable", "cleanable", "heatable", "coolable", "toggleable", "sliceable")
"""What an item's type lets the player do with it."""

QUALITIES = {"isclean": "clean", "ishot": "hot", "iscool": "cool", "issliced": "sliced", "istoggled": "on"}
"""Predicate -> the quality it gives an item."""

_PREPARED = {"isclean": ("cleanable", "clean"), "ishot": ("heatable", "hot"), "iscool": ("coolable", "cool")}
_TASK = re.compile(r'"task": \[\s*\{\s*"rhs": "(.*?)"\s*\}', re.DOTALL)
_TASK_PREFIX = "Your task is to: "


@dataclass(frozen=True, slots=True, eq=False)
class Receptacle:
    """A fixed place that holds items, such as a fridge or a table. Equal to itself only."""

    id: str
    name: str
    type: str
    """PDDL type in lower case, such as `fridgetype`."""
    location: str
    """Where the agent stands to use it; several receptacles may share one."""
    is_openable: bool
    accepts: frozenset[str]
    """Types of the items that may be put there."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """Anything in a house that is no receptacle: an apple, a lamp, a window. Equal to itself only."""

    id: str
    name: str
    type: str
    """PDDL type in lower case, such as `appletype`."""
    traits: frozenset[str]
    """Those of TRAITS that it has."""
    inside: tuple[str, ...] | None
    """Names of what lies in it, () when it is empty (a bowl); None when it is no container (an apple)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Enough prepared items in one receptacle; or an item in hand next to a lamp that is on."""

    item_type: str
    count: int = 1
    receptacle_type: str = ""
    """Empty when a lamp is asked for instead."""
    lamp_type: str = ""
    trait: str = ""
    """A trait that each item must have, such as `cleanable`; empty when any item will do."""
    quality: str = ""
    """A quality that each item must have, such as `clean`; empty when any will do."""

    @classmethod
    def parse(cls, text: str) -> "Goal":
        """Reads the goal of one of the six task types. Raises: DataError when it is none of them."""
        items = re.findall(r"\(objecttype \?\w+ (\w+)\)", text)
        receptacles = re.findall(r"\(receptacletype \?\w+ (\w+)\)", text)
        if "istoggled" in text and len(items) == 2:
            return cls(items[1], lamp_type=items[0])
        if not items or not receptacles:
            raise DataError(f"the goal is none of ALFWorld's six: {' '.join(text.split())[:200]}")
        trait, quality = next((needs for predicate, needs in _PREPARED.items() if predicate in text), ("", ""))
        return cls(items[0], 2 if "?o2" in text else 1, receptacles[0], trait=trait, quality=quality)


@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """One game. Nothing in it changes, so any number of engines may play it at once."""

    id: str
    task: str
    """The goal as the player reads it, such as `put a clean apple in fridge.`"""
    task_type: str
    """One of house.FAMILIES."""
    walkthrough: tuple[str, ...]
    """Commands that win; empty when none are known."""
    receptacles: tuple[Receptacle, ...]
    """Sorted by id."""
    at: Mapping[str, tuple[Receptacle, ...]]
    """Location -> the receptacles there, sorted by id."""
    routes: Mapping[str, Mapping[str, Receptacle]]
    """Location of the agent -> `go to` command -> where it leads; nowhere that shares the location."""
    targets: tuple[Receptacle, ...]
    """Receptacles of the type that the goal names."""
    goal: Goal
    start: str
    """Location of the agent at the start."""
    contents: Mapping[Receptacle, frozenset[Item]]
    """What is in each receptacle at the start; an item can be in two."""
    places: Mapping[Item, frozenset[str]]
    """The locations each item is at, at the start."""
    opened: frozenset[Receptacle]
    """Receptacles that are open at the start."""
    qualities: Mapping[Item, frozenset[str]]
    """Qualities of each item at the start."""

    @classmethod
    def parse(cls, document: Mapping[str, Any], *, id: str) -> "Game":
        """Reads a game.

        Args:
            document: Content of a `game.tw-pddl` file. A generated game has `task` (the goal sentence) and `task_type`
                where an official one has `grammar`.
            id: `<split>/<task folder>/<trial>` of an official game; any name of a generated one.

        Raises:
            DataError: Something is missing, or the game is one of alfworld before 0.4.
        """
        try:
            problem = Problem.parse(document["pddl_problem"])
            shown = demangle(problem.subjects("receptacleatlocation") | problem.subjects("objecttype"))
            receptacles, items = _receptacles(problem, shown), _items(problem, shown)
            qualities = _groups((i, word) for predicate, word in QUALITIES.items() for i in problem.subjects(predicate))
            contents = _groups((r, items[i]) for i, r in problem.pairs("inreceptacle"))
            places = _groups(problem.pairs("objectatlocation"))
            goal = Goal.parse(problem.goal)
            start = problem.pairs("atlocation")[0][1]
            return cls(
                id=id,
                task=_task(document),
                task_type=_task_type(document, id),
                walkthrough=tuple(document.get("walkthrough") or ()),
                receptacles=tuple(receptacles.values()),
                at=_at(receptacles.values()),
                routes=_routes(receptacles.values(), start),
                targets=tuple(r for r in receptacles.values() if r.type == goal.receptacle_type),
                goal=goal,
                start=start,
                contents={receptacle: contents[r] for r, receptacle in receptacles.items()},
                places={item: places[i] for i, item in items.items()},
                opened=frozenset(receptacles[r] for r in problem.subjects("opened")),
                qualities={item: qualities[i] for i, item in items.items()},
            )
        except DataError as error:
            raise DataError(f"{id}: {error}") from error
        except (LookupError, TypeError, ValueError) as error:
            raise DataError(f"{id}: not a playable ALFWorld game ({error!r})") from error


def _receptacles(problem: Problem, shown: Mapping[str, str]) -> dict[str, Receptacle]:
    types, openable = dict(problem.pairs("receptacletype")), problem.subjects("openable")
    accepts = _groups(problem.pairs("cancontain"))
    return {
        r: Receptacle(r, shown[r], types[r], location, r in openable, accepts[types[r]])
        for r, location in problem.pairs("receptacleatlocation")
    }


def _at(receptacles: Collection[Receptacle]) -> dict[str, tuple[Receptacle, ...]]:
    return {spot: tuple(r for r in receptacles if r.location == spot) for spot in {r.location for r in receptacles}}


def _routes(receptacles: Collection[Receptacle], start: str) -> dict[str, dict[str, Receptacle]]:
    spots = {start} | {receptacle.location for receptacle in receptacles}
    return {spot: {f"go to {r.name}": r for r in receptacles if r.location != spot} for spot in spots}


def _items(problem: Problem, shown: Mapping[str, str]) -> dict[str, Item]:
    traits = _groups((i, trait) for trait in TRAITS for i in problem.subjects(trait))
    containers = problem.subjects("isreceptacleobject")
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for inner, outer in problem.pairs("inreceptacleobject"):
        inside[outer].append(shown[inner])
    return {
        i: Item(i, shown[i], item_type, traits[i], tuple(inside[i]) if i in containers else None)
        for i, item_type in problem.pairs("objecttype")
    }


def _groups(pairs: Iterable[tuple[str, T]]) -> defaultdict[str, frozenset[T]]:
    """Gives the second members of the pairs by their first; nothing for a first that never occurs."""
    groups: defaultdict[str, set[T]] = defaultdict(set)
    for first, second in pairs:
        groups[first].add(second)
    return defaultdict(frozenset, {first: frozenset(seconds) for first, seconds in groups.items()})


def _task(document: Mapping[str, Any]) -> str:
    grammar = document.get("grammar")
    if grammar is None:
        return str(document["task"]).removeprefix(_TASK_PREFIX).removesuffix(".") + "."
    if "move {o} to {r}" not in grammar:
        raise DataError("a game of alfworld before 0.4 (`put X in/on Y`); get the present ones with alfworld-download")
    found = _TASK.search(grammar)
    if not found:
        raise DataError("its grammar has no task sentence")
    return found[1].removeprefix(_TASK_PREFIX)


def _task_type(document: Mapping[str, Any], id: str) -> str:
    """The family: as the document says, else as the task folder does."""
    task_type = document.get("task_type") or id.split("/")[1].split("-")[0]
    if task_type not in FAMILIES:
        raise DataError(f"task type {task_type!r} is none of {', '.join(FAMILIES)}")
    return task_type
