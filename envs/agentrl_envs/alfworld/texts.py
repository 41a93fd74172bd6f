"""The sentences of the stock engine's grammar (alfred.twl2), word for word."""

from collections.abc import Collection, Sequence

WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
NOTHING_HAPPENS = "Nothing happens."
HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""

_EXAMINED = (
    ({"clean", "hot", "sliced"}, "This is a hot and clean sliced {}."),
    ({"clean", "cool", "sliced"}, "This is a cool and clean sliced {}."),
    ({"clean", "sliced"}, "This is a clean sliced {}."),
    ({"hot", "sliced"}, "This is a hot sliced {}."),
    ({"cool", "sliced"}, "This is a cool sliced {}."),
    ({"clean", "hot"}, "This is a hot and clean {}."),
    ({"clean", "cool"}, "This is a cool and clean {}."),
    ({"hot"}, "This is a hot {}."),
    ({"clean"}, "This is a clean {}."),
    ({"cool"}, "This is a cold {}."),
    ({"on"}, "This {} is on."),
    ({"sliced"}, "This is a sliced {}."),
    (set[str](), "There's nothing special about {}."),
)
"""Needed qualities and what is then said; the first that applies."""


def listing(names: Sequence[str]) -> str:
    """Gives `nothing`, `a`, `a, and b`, `a, b, and c`."""
    if not names:
        return "nothing"
    *others, last = names
    return f"{', '.join(others)}, and {last}" if others else last


def a_listing(names: Sequence[str]) -> str:
    """Gives a listing with `a` before each name; the stock engine says `a apple`."""
    return listing([f"a {name}" for name in names])


def room(names: Sequence[str]) -> str:
    """Gives the view from a location that has no receptacle."""
    return f"You are in the middle of a room. Looking quickly around you, you see {a_listing(names)}."


def examined(name: str, qualities: Collection[str]) -> str:
    """Gives the description of an item with these qualities."""
    return next(text.format(name) for needed, text in _EXAMINED if needed.issubset(qualities))
