"""What a generated house may hold: rooms, receptacles, objects and what can be done to them.

The tables are this project's own; their words are ALFWorld's, so that one vocabulary covers both. A generated house is
smaller and tidier than ALFRED's, and every object has a few plausible places.
"""

from dataclasses import dataclass, field

FAMILIES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six task families of ALFWorld."""

TREATMENTS = {
    "pick_clean_then_place_in_recep": ("clean", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("heat", "Microwave"),
    "pick_cool_then_place_in_recep": ("cool", "Fridge"),
}
"""Families that treat the object on the way: the verb and the receptacle that does it."""

OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"})
"""Receptacles that start closed."""


@dataclass(frozen=True)
class Room:
    """A kind of room: what always stands in it, and what else may, with the most of each."""

    fixed: tuple[str, ...]
    others: dict[str, int]


@dataclass(frozen=True)
class Thing:
    """A kind of object: what can be done to it and where it may be."""

    homes: frozenset[str]
    actions: frozenset[str] = field(default_factory=frozenset)


ROOMS = {
    "kitchen": Room(
        fixed=("Fridge", "Microwave", "SinkBasin"),
        others={"Cabinet": 6, "CounterTop": 3, "DiningTable": 2, "Drawer": 5, "GarbageCan": 1, "Shelf": 3}
        | {"SideTable": 1, "StoveBurner": 4, "CoffeeMachine": 1, "Toaster": 1},
    ),
    "bathroom": Room(
        fixed=("SinkBasin", "Toilet"),
        others={"Cabinet": 4, "CounterTop": 1, "Drawer": 4, "GarbageCan": 1, "Shelf": 2, "BathtubBasin": 1}
        | {"SideTable": 1, "TowelHolder": 1, "HandTowelHolder": 2, "ToiletPaperHanger": 1},
    ),
    "bedroom": Room(
        fixed=("Bed",),
        others={"ArmChair": 1, "Desk": 2, "Drawer": 5, "Dresser": 1, "GarbageCan": 1, "LaundryHamper": 1}
        | {"Safe": 1, "Shelf": 4, "SideTable": 2},
    ),
    "livingroom": Room(
        fixed=("Sofa",),
        others={"ArmChair": 2, "Cabinet": 4, "CoffeeTable": 2, "DiningTable": 1, "Drawer": 4, "Dresser": 1}
        | {"GarbageCan": 1, "Safe": 1, "Shelf": 3, "SideTable": 3, "TVStand": 1, "Ottoman": 1},
    ),
}

_TABLES = "CoffeeTable CounterTop Desk DiningTable SideTable"
_LIVING = f"{_TABLES} Dresser Shelf Sofa ArmChair TVStand Ottoman"
_FOOD = f"{_TABLES} Fridge GarbageCan Microwave SinkBasin"
_DISHES = f"{_TABLES} Cabinet Shelf SinkBasin"
_CUTLERY = f"{_TABLES} Drawer SinkBasin"
_COOKWARE = "CounterTop DiningTable StoveBurner SinkBasin Cabinet"
_BATH = "Cabinet CounterTop Drawer GarbageCan Shelf SideTable Toilet"

LAMPS = {
    "DeskLamp": Thing(frozenset(["CoffeeTable", "Desk", "DiningTable", "Dresser", "Shelf", "SideTable", "TVStand"])),
    "FloorLamp": Thing(frozenset(["CoffeeTable", "Desk", "DiningTable", "Dresser", "Shelf", "SideTable", "TVStand"])),
}
"""Objects that only give light."""


def _thing(homes: str, actions: str = "") -> Thing:
    return Thing(frozenset(homes.split()), frozenset(actions.split()))


THINGS = {
    "AlarmClock": _thing("Desk Drawer Dresser Shelf SideTable"),
    "Apple": _thing(_FOOD, "clean heat cool slice"),
    "BaseballBat": _thing("Bed Desk Sofa"),
    "BasketBall": _thing("ArmChair Bed Desk"),
    "Book": _thing(f"{_LIVING} Bed Drawer Cabinet"),
    "Bowl": _thing(f"{_DISHES} Fridge Dresser", "clean cool"),
    "Box": _thing(_LIVING),
    "Bread": _thing(_FOOD, "heat cool slice"),
    "ButterKnife": _thing(_CUTLERY, "clean"),
    "CD": _thing("Desk Drawer Dresser GarbageCan Safe Shelf SideTable"),
    "Candle": _thing(f"{_BATH} CoffeeTable Dresser"),
    "CellPhone": _thing(f"{_LIVING} Bed Drawer Safe"),
    "Cloth": _thing(f"{_BATH} BathtubBasin SinkBasin LaundryHamper Dresser", "clean"),
    "CreditCard": _thing(f"{_LIVING} Drawer"),
    "Cup": _thing(f"{_DISHES} Fridge Microwave", "clean heat cool"),
    "DishSponge": _thing(f"{_CUTLERY} BathtubBasin Cabinet Shelf Toilet", "clean"),
    "Egg": _thing(_FOOD, "clean heat cool slice"),
    "Fork": _thing(_CUTLERY, "clean"),
    "HandTowel": _thing("CounterTop GarbageCan HandTowelHolder SinkBasin"),
    "Kettle": _thing(f"{_COOKWARE} Shelf", "clean"),
    "KeyChain": _thing(f"{_LIVING} Drawer Safe"),
    "Knife": _thing(_CUTLERY, "clean"),
    "Ladle": _thing(_CUTLERY, "clean"),
    "Laptop": _thing(f"{_LIVING} Bed"),
    "Lettuce": _thing(_FOOD, "clean cool slice"),
    "Mug": _thing(f"{_DISHES} CoffeeMachine Drawer Microwave", "clean heat cool"),
    "Newspaper": _thing(f"{_LIVING} Drawer GarbageCan"),
    "Pan": _thing(f"{_COOKWARE} Fridge", "clean cool"),
    "Pen": _thing(f"{_LIVING} Drawer GarbageCan"),
    "Pencil": _thing(f"{_LIVING} Drawer GarbageCan"),
    "PepperShaker": _thing(f"{_CUTLERY} Cabinet Shelf"),
    "Pillow": _thing("ArmChair Bed Ottoman Sofa"),
    "Plate": _thing(f"{_DISHES} Fridge Microwave", "clean heat cool"),
    "Plunger": _thing("Cabinet Toilet GarbageCan"),
    "Pot": _thing(f"{_COOKWARE} Fridge", "clean cool"),
    "Potato": _thing(_FOOD, "clean heat cool slice"),
    "RemoteControl": _thing(f"{_LIVING} Drawer"),
    "SaltShaker": _thing(f"{_CUTLERY} Cabinet Shelf"),
    "SoapBar": _thing(f"{_BATH} BathtubBasin SinkBasin", "clean"),
    "SoapBottle": _thing(f"{_BATH} SinkBasin"),
    "Spatula": _thing(_CUTLERY, "clean"),
    "Spoon": _thing(_CUTLERY, "clean"),
    "SprayBottle": _thing(_BATH),
    "Statue": _thing(f"{_LIVING} Safe"),
    "TissueBox": _thing(f"{_BATH} CoffeeTable Dresser"),
    "ToiletPaper": _thing(f"{_BATH} ToiletPaperHanger"),
    "Tomato": _thing(_FOOD, "clean heat cool slice"),
    "Towel": _thing("BathtubBasin TowelHolder"),
    "Vase": _thing(f"{_LIVING} Safe"),
    "Watch": _thing(f"{_LIVING} Drawer Safe"),
    "WineBottle": _thing(f"{_DISHES} Fridge GarbageCan", "cool"),
}
"""Objects that can be picked up."""
