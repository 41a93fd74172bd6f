from agentrl.engines._residents import Residents


class Book:
    """What is written in each slot; the residents' swaps happen to it too."""

    def __init__(self) -> None:
        self.slots: dict[int, str] = {}
        self.residents = Residents[str](self.swap)

    def swap(self, one: int, other: int) -> None:
        self.slots[one], self.slots[other] = self.slots.get(other, ""), self.slots.get(one, "")

    def enter(self, name: str, ids: tuple[int, ...] = (), *, limit: int = 9) -> str:
        """Gives what the slot held that the request got, once requests are in front."""
        kept = self.residents.find(ids)
        self.residents.enter(name, kept, limit=limit)
        slot = self.residents.in_front().index(name)
        found, self.slots[slot] = self.slots.get(slot, ""), name
        return found if kept else ""

    def leave(self, name: str, ids: tuple[int, ...], *, limit: int = 9) -> None:
        self.residents.leave(self.residents.in_front().index(name), ids, limit=limit)


def book_of(*conversations: tuple[int, ...], limit: int = 9) -> Book:
    """Gives slots with conversations, left in this order, that are named by their ids."""
    book = Book()
    for ids in conversations:
        book.enter(str(ids), limit=limit)
    for slot, ids in enumerate(conversations):
        book.residents.leave(slot, ids, limit=limit)
    return book


def test_a_request_gets_the_slot_of_the_longest_conversation_that_it_goes_on_from_and_no_other_does() -> None:
    book = book_of((1, 2), (1, 2, 3), (1, 2, 3, 4), (9,))
    assert [book.enter(name, (1, 2, 3, 4)) for name in "abc"] == ["(1, 2, 3)", "(1, 2)", ""]
    assert book.enter("d", (9, 9)) == "(9,)"
    assert book.enter("e", (9, 9)) == ""


def test_conversations_with_the_same_tokens_are_kept_apart() -> None:
    book = Book()
    for name in "ab":
        book.enter(name)
    for name in "ab":
        book.leave(name, (1, 2))
    assert [book.enter(name, (1, 2, 3)) for name in "cde"] == ["a", "b", ""]


def test_equal_ends_are_not_taken_for_equal_conversations() -> None:
    end = tuple(range(20))
    assert book_of((1, *end)).enter("a", (2, *end, 5)) == ""


def test_requests_are_in_front_in_the_slots_that_hold_what_is_theirs() -> None:
    book = Book()
    for name in "abcde":
        book.enter(name)
    book.leave("b", (1,))
    book.leave("a", (2,))
    front = list(book.residents.in_front())
    assert sorted(front) == ["c", "d", "e"]
    assert [book.slots[slot] for slot in range(3)] == front
    assert book.enter("f", (1, 7)) == "b"
    assert book.enter("g", (2, 7)) == "a"


def test_the_oldest_conversation_makes_room() -> None:
    book = book_of((1,), (2,), limit=2)
    book.enter("a", (7, 7), limit=2)
    assert book.residents.find((1, 5)) is None
    assert book.enter("b", (2, 5), limit=2) == "(2,)"


def test_requests_get_slots_beyond_the_limit_but_leave_nothing_there() -> None:
    book = Book()
    for name in "abc":
        book.enter(name, limit=2)
    book.leave("c", (3,), limit=2)
    assert book.residents.find((3, 5)) is None
    assert len(book.residents) == 3


def test_trimming_forgets_what_is_behind_and_no_request() -> None:
    book = book_of((1,), (2,), (3,))
    book.enter("a", (3, 5))
    book.residents.trim(0)
    assert book.residents.requests() == ["a"]
    assert len(book.residents) == 1
    assert book.residents.find((1, 5)) is book.residents.find((2, 5)) is None


def test_a_cleared_house_is_empty() -> None:
    book = book_of((1,), (2,))
    book.enter("a", (2, 5))
    assert book.residents.clear() == ["a"]
    assert (len(book.residents), book.residents.num_requests, book.residents.find((1, 5))) == (0, 0, None)
