"""ALFWorld games out of a seed: houses, goals and their solutions, with no download.

Three splits share one generator. `train` and `in_distribution` draw layouts from one pool and differ in objects and
goals; `out_of_distribution` uses layouts of another pool and asks for object-receptacle pairs that training never
shows: a pair or a layout belongs to one side by its hash, so the sides cannot meet.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from agentrl.errors import EnvError
from agentrl_envs.alfworld.house import FAMILIES, LAMPS, OPENABLE, ROOMS, THINGS, TREATMENTS
from agentrl_envs.alfworld.names import demangle

HELD_OUT_SHARE = 4
"""One pair and one layout in this many is never trained on."""

_SENTENCES = {
    "pick_and_place_simple": ("put a {thing} in {place}.", "put some {thing} on {place}."),
    "look_at_obj_in_light": ("look at {thing} under the {place}.", "examine the {thing} with the {place}."),
    "pick_clean_then_place_in_recep": ("put a clean {thing} in {place}.", "clean some {thing} and put it in {place}."),
    "pick_heat_then_place_in_recep": ("put a hot {thing} in {place}.", "heat some {thing} and put it in {place}."),
    "pick_cool_then_place_in_recep": ("put a cool {thing} in {place}.", "cool some {thing} and put it in {place}."),
    "pick_two_obj_and_place": ("put two {thing} in {place}.", "find two {thing} and put them in {place}."),
}


@dataclass(frozen=True)
class Knobs:
    """How large the generated games are."""

    families: tuple[str, ...] = FAMILIES
    """Which of the six task families occur."""
    receptacles: tuple[int, int] = (6, 9)
    """Fewest and most receptacles of a house, from 5 to 16."""
    objects: tuple[int, int] = (8, 14)
    """Fewest and most objects of a house, from 2 to 40."""
    layouts: int = 256
    """How many layouts are drawn for each side, trained on and held out; small houses repeat some."""

    def __post_init__(self) -> None:
        families = self.families if isinstance(self.families, tuple) else ()
        if not families or any(family not in FAMILIES for family in families):
            raise EnvError(f"families: {self.families!r} given; use a list of some of {', '.join(FAMILIES)}")
        _check_range("receptacles", self.receptacles, least=5, most=16)
        _check_range("objects", self.objects, least=2, most=40)
        if not isinstance(self.layouts, int) or self.layouts < 8:
            raise EnvError(f"layouts: {self.layouts!r} cannot hold every family; use a whole number of 8 or more")


def _check_range(name: str, value: Any, *, least: int, most: int) -> None:
    is_range = isinstance(value, tuple) and [type(end) for end in value] == [int, int]
    if not is_range or not least <= value[0] <= value[1] <= most:
        raise EnvError(f"{name}: {value!r} given; use [fewest, most], two whole numbers from {least} to {most}")


@dataclass(frozen=True)
class House:
    """A house before it is written down: receptacles and objects by id, and where each object is."""

    receptacles: Mapping[str, str]
    objects: Mapping[str, str]
    where: Mapping[str, str]


def held_out(*names: str) -> bool:
    """Whether a pair or a layout belongs to the out-of-distribution side."""
    return hashlib.sha256("|".join(names).encode()).digest()[0] % HELD_OUT_SHARE == 0


def generate(split: str, number: int, knobs: Knobs) -> dict[str, Any]:
    """Gives game `number` of a split as a document in the form of ALFWorld's `game.tw-pddl` files.

    Keys: pddl_problem, task (the goal sentence), task_type, walkthrough, solvable.
    """
    rng = random.Random(f"{split}/{number}")
    family = knobs.families[number % len(knobs.families)]
    unseen = split == "out_of_distribution"
    for _ in range(1000):
        layout = rng.choice(_layouts(unseen, knobs))
        goal = _choose_goal(family, layout, unseen, rng)
        if goal is not None:
            break
    else:
        raise EnvError(f"no layout of these knobs allows {family}: {knobs}")
    house = _furnish(family, layout, goal, unseen, knobs, rng)
    sentence = rng.choice(_SENTENCES[family]).format(thing=goal[0].lower(), place=goal[1].lower())
    return {
        "pddl_problem": _problem(f"{split}_{number}", family, house, goal),
        "task": f"Your task is to: {sentence}",
        "task_type": family,
        "walkthrough": _walkthrough(family, house, goal),
        "solvable": True,
    }


@cache
def _layouts(unseen: bool, knobs: Knobs) -> Sequence[tuple[str, ...]]:
    rng = random.Random(f"layouts/{unseen}/{knobs.receptacles}")
    rooms = sorted(ROOMS)
    found: list[tuple[str, ...]] = []
    while len(found) < knobs.layouts:
        room = ROOMS[rooms[len(found) % len(rooms)]]
        size = rng.randint(*knobs.receptacles)
        stock = [name for name, most in sorted(room.others.items()) for _ in range(most)]
        layout = tuple(sorted([*room.fixed, *rng.sample(stock, size - len(room.fixed))]))
        if held_out(*layout) == unseen:
            found.append(layout)
    return found


def _choose_goal(family: str, layout: Sequence[str], unseen: bool, rng: random.Random) -> tuple[str, str] | None:
    """Gives an object type and where it shall go (a lamp, for the light family) that this layout allows."""
    places = sorted(set(layout))
    verb, station = TREATMENTS.get(family, ("", ""))
    if station and station not in places:
        return None
    if family == "look_at_obj_in_light":
        targets = [lamp for lamp in LAMPS if _homes(lamp, layout, unseen)]
        allowed = {lamp: set(THINGS) for lamp in targets}
    else:
        targets = [place for place in places if place != station]
        allowed = {place: {name for name, thing in THINGS.items() if place in thing.homes} for place in targets}
    goals = [
        (name, target)
        for target in targets
        for name in sorted(allowed[target])
        if (not verb or verb in THINGS[name].actions)
        and held_out(name, target) == unseen
        and _homes(name, layout, unseen, besides=target)
    ]
    return rng.choice(goals) if goals else None


def _homes(name: str, layout: Sequence[str], unseen: bool, besides: str = "") -> list[int]:
    """Gives the positions in the layout where a thing may lie at the start."""
    thing = THINGS.get(name) or LAMPS[name]
    return [
        position
        for position, place in enumerate(layout)
        if place in thing.homes and place != besides and (unseen or not held_out(name, place))
    ]


def _furnish(
    family: str, layout: Sequence[str], goal: tuple[str, str], unseen: bool, knobs: Knobs, rng: random.Random
) -> House:
    receptacles = {_new_id(place, rng): place for place in layout}
    ids = list(receptacles)
    objects: dict[str, str] = {}
    where: dict[str, str] = {}

    def place(name: str, besides: str = "") -> None:
        homes = _homes(name, layout, unseen, besides)
        if homes:
            new = _new_id(name, rng)
            objects[new], where[new] = name, ids[rng.choice(homes)]

    for _ in range(2 if family == "pick_two_obj_and_place" else 1):
        place(goal[0], besides=goal[1])
    if family == "look_at_obj_in_light":
        place(goal[1])
    others = sorted(set(THINGS) - {goal[0]})
    wanted = rng.randint(*knobs.objects)
    while len(objects) < wanted:
        for name in rng.sample(others, len(others)):
            for _ in range(rng.choice((1, 1, 2))):
                if len(objects) < wanted:
                    place(name)
    return House(receptacles, objects, where)


def _new_id(name: str, rng: random.Random) -> str:
    """Gives an id in ALFRED's form; its random coordinates decide the number in the shown name."""
    base, basin, _ = name.partition("Basin")
    position = [
        f"_{rng.choice(('plus', 'minus'))}_{rng.randrange(10):02d}_dot_{rng.randrange(100):02d}" for _ in range(3)
    ]
    return "_bar_".join([base, *position, *([name] if basin else [])])


def _problem(name: str, family: str, house: House, goal: tuple[str, str]) -> str:
    start = "loc_bar_99_bar_0_bar_0_bar_30"
    spots = {receptacle: f"loc_bar_{i}_bar_{i}_bar_0_bar_30" for i, receptacle in enumerate(house.receptacles)}
    kinds = sorted({*THINGS, *LAMPS})
    places = sorted({place for room in ROOMS.values() for place in (*room.fixed, *room.others)})
    lines = [
        "agent1 - agent",
        f"{start} - location",
        *(f"{kind}Type - otype" for kind in kinds),
        *(f"{place}Type - rtype" for place in places),
        *(f"{thing} - object" for thing in house.objects),
        *(f"{receptacle} - receptacle" for receptacle in house.receptacles),
        *(f"{spot} - location" for spot in spots.values()),
    ]
    facts = [f"(atLocation agent1 {start})"]
    for receptacle, place in house.receptacles.items():
        facts += [
            f"(receptacleType {receptacle} {place}Type)",
            f"(receptacleAtLocation {receptacle} {spots[receptacle]})",
        ]
        facts += [f"(openable {receptacle})"] * (place in OPENABLE)
    for place in sorted(set(house.receptacles.values())):
        facts += [
            f"(canContain {place}Type {kind}Type)" for kind in kinds if kind in THINGS and place in THINGS[kind].homes
        ]
    for thing, kind in house.objects.items():
        at = house.where[thing]
        facts += [
            f"(objectType {thing} {kind}Type)",
            f"(inReceptacle {thing} {at})",
            f"(objectAtLocation {thing} {spots[at]})",
        ]
        facts += [f"(toggleable {thing})"] if kind in LAMPS else [f"(pickupable {thing})"]
        facts += [f"({action}able {thing})" for action in sorted(THINGS[kind].actions)] if kind in THINGS else []
    return (
        f"(define (problem {name})\n(:domain alfred)\n(:objects\n"
        + "\n".join(lines)
        + "\n)\n(:init\n"
        + "\n".join(facts)
        + f"\n)\n(:goal\n{_goal_formula(family, goal)}\n)\n)\n"
    )


def _goal_formula(family: str, goal: tuple[str, str]) -> str:
    """Gives the goal in ALFRED's PDDL, existential over all objects of the type."""
    thing, target = goal
    if family == "look_at_obj_in_light":
        return f"""(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location)
(and (objectType ?ot {target}Type) (toggleable ?ot) (isToggled ?ot)
(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))
(exists (?o - object ?a - agent) (and (objectType ?o {thing}Type) (holds ?a ?o))))"""
    if family == "pick_two_obj_and_place":
        return f"""(exists (?r - receptacle) (and (exists (?o1 - object)
(and (objectType ?o1 {thing}Type) (receptacleType ?r {target}Type) (inReceptacle ?o1 ?r)
(exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 {thing}Type)
(receptacleType ?r {target}Type) (inReceptacle ?o2 ?r)))))))"""
    states = {
        "clean": "(cleanable ?o) (isClean ?o)",
        "heat": "(heatable ?o) (isHot ?o)",
        "cool": "(coolable ?o) (isCool ?o)",
    }
    treated = states.get(TREATMENTS.get(family, ("", ""))[0], "")
    return f"""(exists (?r - receptacle ?o - object) (and {treated}
(objectType ?o {thing}Type) (receptacleType ?r {target}Type) (inReceptacle ?o ?r)))"""


def _walkthrough(family: str, house: House, goal: tuple[str, str]) -> list[str]:
    """Gives a shortest plan for one who knows where everything is."""
    names = demangle(name.lower() for name in (*house.receptacles, *house.objects))
    plan: list[str] = []
    opened: set[str] = set()
    position = ""

    def go(receptacle: str, *, inside: bool) -> str:
        nonlocal position
        shown = names[receptacle.lower()]
        if receptacle != position:
            plan.append(f"go to {shown}")
            position = receptacle
        if inside and house.receptacles[receptacle] in OPENABLE and receptacle not in opened:
            plan.append(f"open {shown}")
            opened.add(receptacle)
        return shown

    def find(kind: str, among: Mapping[str, str]) -> list[str]:
        return [name for name, its_kind in among.items() if its_kind == kind]

    for thing in find(goal[0], house.objects)[: 2 if family == "pick_two_obj_and_place" else 1]:
        shown = names[thing.lower()]
        place = go(house.where[thing], inside=True)
        plan.append(f"take {shown} from {place}")
        if family in TREATMENTS:
            verb, station = TREATMENTS[family]
            place = go(find(station, house.receptacles)[0], inside=False)
            plan.append(f"{verb} {shown} with {place}")
        if family == "look_at_obj_in_light":
            lamp = find(goal[1], house.objects)[0]
            go(house.where[lamp], inside=False)
            plan.append(f"use {names[lamp.lower()]}")
        else:
            place = go(find(goal[1], house.receptacles)[0], inside=True)
            plan.append(f"move {shown} to {place}")
    return plan
