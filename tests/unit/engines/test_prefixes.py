from agentrl.engines._prefixes import NOTHING, Prefix, PrefixCache


def prefixes(*ids: tuple[int, ...]) -> list[Prefix]:
    return [Prefix(one, None) for one in ids]


def test_the_longest_prefix_that_a_prompt_goes_on_from_is_given_out_once() -> None:
    cache = PrefixCache(100)
    cache.put(prefixes((1, 2), (1, 2, 3), (1, 2, 3, 4), (9,)))
    assert [cache.take((1, 2, 3, 4)).ids for _ in range(3)] == [(1, 2, 3), (1, 2), ()]
    assert cache.take((9, 9)).ids == (9,)
    assert cache.take((9, 9)) is NOTHING


def test_the_oldest_prefixes_make_room() -> None:
    cache = PrefixCache(5)
    cache.put(prefixes((1, 1), (2, 2)))
    cache.put(prefixes((3, 3)))
    assert cache.take((1, 1, 0)) is NOTHING
    assert cache.take((2, 2, 0)).ids == (2, 2)
    cache.put(prefixes((4, 4, 4), (3, 3)))  # as (3, 3) is put again, it is now the newer
    cache.put(prefixes((5, 5)))
    assert cache.take((4, 4, 4, 0)) is NOTHING
    assert cache.take((3, 3, 0)).ids == (3, 3)


def test_a_prefix_larger_than_the_cache_is_not_kept() -> None:
    cache = PrefixCache(2)
    cache.put(prefixes((1, 1, 1)))
    assert cache.take((1, 1, 1, 1)) is NOTHING


def test_a_cleared_cache_knows_nothing() -> None:
    cache = PrefixCache(100)
    cache.put(prefixes((1, 2)))
    cache.clear()
    assert cache.take((1, 2, 3)) is NOTHING
    cache.put(prefixes((1, 2)))
    assert cache.take((1, 2, 3)).ids == (1, 2)
