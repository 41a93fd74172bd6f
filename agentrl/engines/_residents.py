"""Who is in which slot: requests in work in the first ones, behind them conversations that may go on."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
_TAIL = 8


@dataclass(eq=False)
class Kept:
    """A conversation between its turns: the tokens that the model has read of it."""

    ids: tuple[int, ...]
    slot: int

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """Its length and its end: cheap to look up, and seldom another's too."""
        return len(self.ids), self.ids[-_TAIL:]


class Residents(Generic[T]):
    """Slots by number: each has a request, a kept conversation or nobody. `swap` exchanges what two slots hold."""

    def __init__(self, swap: Callable[[int, int], None]) -> None:
        self._swap = swap
        self._requests: list[T | None] = []
        self._kept: dict[int, Kept] = {}  # by slot
        self._ages: dict[Kept, None] = {}  # the oldest first
        self._by_key: dict[tuple[int, tuple[int, ...]], list[Kept]] = {}
        self._lengths: Counter[int] = Counter()
        self.num_requests = 0

    def clear(self) -> list[T]:
        """Empties all slots and gives the requests that were in work."""
        in_work = self.requests()
        self.num_requests = 0
        for one in (self._requests, self._kept, self._ages, self._by_key, self._lengths):
            one.clear()
        return in_work

    def __len__(self) -> int:
        return len(self._requests)

    def find(self, ids: tuple[int, ...]) -> Kept | None:
        """Gives the longest kept conversation that `ids` goes on from."""
        for length in sorted(self._lengths, reverse=True):
            if length < len(ids):
                for kept in self._by_key.get((length, ids[max(0, length - _TAIL) : length]), ()):
                    if kept.ids == ids[:length]:
                        return kept
        return None

    def enter(self, request: T, kept: Kept | None, *, limit: int) -> None:
        """Puts a request where it goes on from, else in a free slot, a new one up to `limit`, or the oldest's."""
        if kept is None and self._is_full(limit):
            kept = next(iter(self._ages))
        if kept is not None:
            slot = kept.slot
            self._forget(kept)
        else:
            slot = next((i for i, who in enumerate(self._requests) if who is None and i not in self._kept), len(self))
        if slot == len(self):
            self._requests.append(None)
        self._requests[slot] = request
        self.num_requests += 1

    def leave(self, slot: int, ids: tuple[int, ...], *, limit: int) -> None:
        """Takes a request out and keeps what it has read, unless there are more slots than `limit`."""
        self._requests[slot] = None
        self.num_requests -= 1
        if len(self) > limit:
            return
        kept = self._kept[slot] = Kept(ids, slot)
        self._ages[kept] = None
        self._by_key.setdefault(kept.key, []).append(kept)
        self._lengths[len(ids)] += 1

    def in_front(self) -> Sequence[T]:
        """Brings the requests into the first slots and gives them, by slot."""
        num = self.num_requests
        holes = [i for i in range(num) if self._requests[i] is None]
        behind = [i for i in range(num, len(self)) if self._requests[i] is not None] if holes else []
        for hole, other in zip(holes, behind, strict=True):
            self._swap(hole, other)
            self._requests[hole], self._requests[other] = self._requests[other], None
            if kept := self._kept.pop(hole, None):
                kept.slot = other
                self._kept[other] = kept
        return self.requests()

    def requests(self) -> list[T]:
        """Gives the requests in work, by slot."""
        return [request for request in self._requests if request is not None]

    def trim(self, num_slots: int) -> None:
        """Forgets conversations in slots from this number on; requests stay, and are in front."""
        num_slots = max(num_slots, self.num_requests)
        for slot in range(num_slots, len(self)):
            if kept := self._kept.get(slot):
                self._forget(kept)
        del self._requests[num_slots:]

    def _is_full(self, limit: int) -> bool:
        return len(self) >= limit and bool(self._kept) and len(self._kept) + self.num_requests == len(self)

    def _forget(self, kept: Kept) -> None:
        del self._kept[kept.slot], self._ages[kept]
        self._by_key[kept.key].remove(kept)
        if not self._by_key[kept.key]:
            del self._by_key[kept.key]
        self._lengths[len(kept.ids)] -= 1
        if not self._lengths[len(kept.ids)]:
            del self._lengths[len(kept.ids)]
