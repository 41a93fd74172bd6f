"""Names shown for THOR's ids: `apple_bar__plus_00_dot_31_...` reads `apple 1`."""

from collections import Counter
from collections.abc import Iterable


def demangle(ids: Iterable[str]) -> dict[str, str]:
    """Gives the shown name of each id, numbered downwards per kind in the order of the sorted ids (lower case).

    The numbers depend on all ids of a house together. An id with `basin` in it is of a kind of its own: the player sees
    `sinkbasin 1`, not the sink around it.
    """
    kinds = {id: _kind(id) for id in sorted(ids)}
    left = Counter(kinds.values())
    shown: dict[str, str] = {}
    for id, kind in kinds.items():
        shown[id] = f"{kind} {left[kind]}"
        left[kind] -= 1
    return shown


def _kind(id: str) -> str:
    kind = id.split("_bar_", 1)[0]
    return kind + "basin" if "basin" in id else kind
