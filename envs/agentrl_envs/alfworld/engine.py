"""Plays ALFWorld games: the engine interface, and an exact re-implementation of the stock engine in plain Python."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agentrl_envs.alfworld import texts
from agentrl_envs.alfworld.games import Game, Item, Receptacle
from agentrl_envs.alfworld.world import World

_PUT = re.compile(r"put (.+) (?:in/on|in|on) (.+)")
_KNIVES = frozenset({"knifetype", "butterknifetype"})
_TREATMENTS = (
    ("clean", World.clean, "cleanable", frozenset({"sinkbasintype", "sinktype"})),
    ("heat", World.heat, "heatable", frozenset({"microwavetype"})),
    ("cool", World.cool, "coolable", frozenset({"fridgetype"})),
)
"""Verb, action, trait of the item, types of the receptacle."""

_ANYWHERE = {"look": (World.look, ()), "inventory": (World.inventory, ()), "help": (World.help, ())}

Action = tuple[Callable[..., str], tuple[Any, ...]]
"""A method of World and its arguments."""


@dataclass(frozen=True, slots=True)
class Played:
    """What an engine answers."""

    observation: str
    admissible: tuple[str, ...]
    """The commands that are possible now, sorted."""
    won: bool
    """Whether the goal holds now."""
    accepted: bool
    """Whether the last command was possible; a command that is not changes nothing."""


class Engine(Protocol):
    """Plays one game at a time."""

    def reset(self, game: Game) -> Played:
        """Starts a game."""
        ...

    def step(self, command: str) -> Played:
        """Gives the answer to one command."""
        ...


def respell(command: str) -> str:
    """Gives `move X to Y` for `put X in/on Y`, the spelling of alfworld before 0.4, and any other command as it is."""
    put = _PUT.fullmatch(command)
    return f"move {put[1]} to {put[2]}" if put else command


class PythonEngine:
    """The stock engine's texts, commands and verdicts, thousands of times faster, and safe to run in threads.

    With `accept_put`, the old spelling `put X in/on Y` is understood as `move X to Y`; the stock engine refuses it.
    """

    def __init__(self, *, accept_put: bool = False) -> None:
        self._accept_put = accept_put
        self._world: World | None = None
        self._actions: dict[str, Action] = {}
        self._routes: Mapping[str, Receptacle] = {}
        self._admissible: tuple[str, ...] = ()

    def reset(self, game: Game) -> Played:
        """Starts a game."""
        self._world = World(game)
        return self._answer(self._world, self._world.start())

    def step(self, command: str) -> Played:
        """Gives the answer to one command, which must be spelled as in `admissible` but for spaces around it."""
        assert self._world is not None, "reset comes before step"
        action = self._find(command.strip())
        if action is None:
            return Played(texts.NOTHING_HAPPENS, self._admissible, self._world.won(), accepted=False)
        act, arguments = action
        return self._answer(self._world, act(self._world, *arguments))

    def _find(self, command: str) -> Action | None:
        if self._accept_put:
            command = respell(command)
        destination = self._routes.get(command)
        return (World.go, (destination,)) if destination else self._actions.get(command)

    def _answer(self, world: World, observation: str) -> Played:
        self._routes = world.game.routes[world.location]
        self._actions = _actions(world)
        self._admissible = tuple(sorted([*self._routes, *self._actions]))
        return Played(observation, self._admissible, world.won(), accepted=True)


def _actions(world: World) -> dict[str, Action]:
    """Gives every command that is possible now, with what it does, but for those that walk elsewhere."""
    actions: dict[str, Action] = dict(_ANYWHERE)
    for receptacle in world.here():
        actions.update(_with_receptacle(world, receptacle))
        if world.held:
            actions.update(_with_both(world, world.held, receptacle))
        elif world.is_accessible(receptacle):
            actions.update(_taking(world, receptacle))
    if world.held:
        actions.update(_with_held(world, world.held))
    return actions


def _with_receptacle(world: World, receptacle: Receptacle) -> Iterator[tuple[str, Action]]:
    yield f"examine {receptacle.name}", (World.examine_receptacle, (receptacle,))
    if receptacle.is_openable:
        verb, act = ("close", World.close) if receptacle in world.opened else ("open", World.open)
        yield f"{verb} {receptacle.name}", (act, (receptacle,))
    for item in world.contents[receptacle]:
        if "toggleable" in item.traits:
            yield f"use {item.name}", (World.use, (item,))


def _taking(world: World, receptacle: Receptacle) -> Iterator[tuple[str, Action]]:
    for item in world.contents[receptacle]:
        if "pickupable" in item.traits:
            yield f"take {item.name} from {receptacle.name}", (World.take, (item, receptacle))


def _with_both(world: World, held: Item, receptacle: Receptacle) -> Iterator[tuple[str, Action]]:
    if world.is_accessible(receptacle) and held.type in receptacle.accepts:
        yield f"move {held.name} to {receptacle.name}", (World.move, (held, receptacle))
    for verb, act, trait, stations in _TREATMENTS:
        if receptacle.type in stations and trait in held.traits:
            yield f"{verb} {held.name} with {receptacle.name}", (act, (held, receptacle))


def _with_held(world: World, held: Item) -> Iterator[tuple[str, Action]]:
    yield f"examine {held.name}", (World.examine_item, (held,))
    if held.type in _KNIVES:
        for item, locations in world.places.items():
            if "sliceable" in item.traits and world.location in locations:
                yield f"slice {item.name} with {held.name}", (World.slice, (item, held))
