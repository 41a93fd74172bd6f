"""A kitchen small enough to know by heart.

countertop 1 (loc_1): apple 2, knife 1, potato 1 (cool)
drawer 2 and drawer 1 (both loc_2, closed): pencil 1 in both
fridge 1 (loc_3, closed): apple 1
microwave 1 (loc_4, closed): nothing
sidetable 1 (loc_5): bowl 1 with keychain 1 inside, desklamp 1
sinkbasin 1 (loc_6): nothing
"""

from typing import Any

import pytest

from agentrl_envs.alfworld.games import Game

_FACTS = """
(atLocation agent1 loc_0)
(receptacleType CounterTop_bar_1 CounterTopType) (receptacleAtLocation CounterTop_bar_1 loc_1)
(receptacleType Drawer_bar_1 DrawerType) (receptacleAtLocation Drawer_bar_1 loc_2) (openable Drawer_bar_1)
(receptacleType Drawer_bar_2 DrawerType) (receptacleAtLocation Drawer_bar_2 loc_2) (openable Drawer_bar_2)
(receptacleType Fridge_bar_1 FridgeType) (receptacleAtLocation Fridge_bar_1 loc_3) (openable Fridge_bar_1)
(receptacleType Microwave_bar_1 MicrowaveType) (receptacleAtLocation Microwave_bar_1 loc_4) (openable Microwave_bar_1)
(receptacleType SideTable_bar_1 SideTableType) (receptacleAtLocation SideTable_bar_1 loc_5)
(receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType) (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_6)
(canContain CounterTopType AppleType) (canContain CounterTopType KnifeType) (canContain FridgeType AppleType)
(canContain DrawerType PencilType) (canContain SideTableType BowlType) (canContain SideTableType AppleType)
(objectType Apple_bar_1 AppleType) (inReceptacle Apple_bar_1 CounterTop_bar_1) (objectAtLocation Apple_bar_1 loc_1)
(pickupable Apple_bar_1) (cleanable Apple_bar_1) (heatable Apple_bar_1) (coolable Apple_bar_1) (sliceable Apple_bar_1)
(objectType Apple_bar_2 AppleType) (inReceptacle Apple_bar_2 Fridge_bar_1) (objectAtLocation Apple_bar_2 loc_3)
(pickupable Apple_bar_2) (cleanable Apple_bar_2) (heatable Apple_bar_2) (coolable Apple_bar_2) (sliceable Apple_bar_2)
(objectType Knife_bar_1 KnifeType) (inReceptacle Knife_bar_1 CounterTop_bar_1) (objectAtLocation Knife_bar_1 loc_1)
(pickupable Knife_bar_1)
(objectType Potato_bar_1 PotatoType) (inReceptacle Potato_bar_1 CounterTop_bar_1) (objectAtLocation Potato_bar_1 loc_1)
(pickupable Potato_bar_1) (heatable Potato_bar_1) (isCool Potato_bar_1)
(objectType Pencil_bar_1 PencilType) (inReceptacle Pencil_bar_1 Drawer_bar_1) (inReceptacle Pencil_bar_1 Drawer_bar_2)
(objectAtLocation Pencil_bar_1 loc_2) (pickupable Pencil_bar_1)
(objectType Bowl_bar_1 BowlType) (inReceptacle Bowl_bar_1 SideTable_bar_1) (objectAtLocation Bowl_bar_1 loc_5)
(pickupable Bowl_bar_1) (isReceptacleObject Bowl_bar_1) (inReceptacleObject KeyChain_bar_1 Bowl_bar_1)
(objectType KeyChain_bar_1 KeyChainType) (objectAtLocation KeyChain_bar_1 loc_5)
(objectType DeskLamp_bar_1 DeskLampType) (inReceptacle DeskLamp_bar_1 SideTable_bar_1) (toggleable DeskLamp_bar_1)
(objectAtLocation DeskLamp_bar_1 loc_5)
"""

_ONE = """(exists (?r - receptacle) (exists (?o - object)
    (and {} (objectType ?o {}) (receptacleType ?r {}) (inReceptacle ?o ?r))))"""
_GOALS = {
    "pick_and_place_simple": _ONE.format("", "PencilType", "SideTableType"),
    "pick_clean_then_place_in_recep": _ONE.format("(cleanable ?o) (isClean ?o)", "AppleType", "FridgeType"),
    "pick_heat_then_place_in_recep": _ONE.format("(heatable ?o) (isHot ?o)", "AppleType", "FridgeType"),
    "pick_cool_then_place_in_recep": _ONE.format("(coolable ?o) (isCool ?o)", "AppleType", "CounterTopType"),
    "pick_two_obj_and_place": """(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 AppleType)
        (receptacleType ?r SideTableType) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2))
        (objectType ?o2 AppleType) (receptacleType ?r SideTableType) (inReceptacle ?o2 ?r))))))""",
    "look_at_obj_in_light": """(exists (?ot - object ?r - receptacle ?a - agent ?l - location)
        (and (objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l)
        (atLocation ?a ?l) (inReceptacle ?ot ?r))) (exists (?o - object ?a - agent)
        (and (objectType ?o BowlType) (holds ?a ?o)))""",
}


def document(task_type: str = "pick_and_place_simple") -> dict[str, Any]:
    """The kitchen with a goal of this type, as a generated game."""
    problem = f"(define (problem kitchen) (:init {_FACTS}) (:goal (and {_GOALS[task_type]})))"
    return {"pddl_problem": problem, "task": "Your task is to: do it.", "task_type": task_type, "walkthrough": ["look"]}


@pytest.fixture
def kitchen() -> Game:
    return Game.parse(document(), id="kitchen")


@pytest.fixture
def kitchens() -> dict[str, Game]:
    """The kitchen with a goal of each type."""
    return {task_type: Game.parse(document(task_type), id=task_type) for task_type in _GOALS}


@pytest.fixture
def kitchen_document() -> dict[str, Any]:
    return document()
