import math
import multiprocessing
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrl_envs.webshop.search import Index, stored_length

TEXTS = {
    "B3": "red shirt red shirt",
    "B1": "blue shirt",
    "B2": "blue shirt",
    "B4": "green trousers with a red belt and a red hat",
}
WORDS = ["red", "blue", "shirt", "hat", "shoe"]


def naive(texts: dict[str, str], query: str) -> dict[str, float]:
    """The formula of the module, in plain Python; for short documents, whose length is stored exactly."""
    counts = {id: Counter(text.split()) for id, text in texts.items()}
    lengths = {id: sum(found.values()) for id, found in counts.items()}
    mean = sum(lengths.values()) / len(lengths)
    scores: dict[str, float] = {}
    for term in query.split():
        containing = sum(term in found for found in counts.values())
        idf = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
        for id, found in counts.items():
            if found[term]:
                c = 1 / (0.9 * (0.6 + 0.4 * lengths[id] / mean))
                scores[id] = scores.get(id, 0) + idf * (1 - 1 / (1 + found[term] * c))
    return scores


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30), min_size=1, max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
)
def test_scores_are_the_formulas(documents, query):
    texts = {f"D{number:02d}": " ".join(words) for number, words in enumerate(documents)}
    expected = naive(texts, " ".join(query))
    found = dict(Index.build(texts).search(" ".join(query)))
    assert found.keys() == expected.keys()
    assert all(found[id] == pytest.approx(score, rel=1e-5) for id, score in expected.items())


def test_the_best_come_first_and_equal_scores_by_id():
    assert [id for id, _ in Index.build(TEXTS).search("blue shirt")] == ["B1", "B2", "B3"]


def test_a_repeated_word_counts_twice():
    index = Index.build(TEXTS)
    once, twice = (dict(index.search(query))["B1"] for query in ("blue", "blue blue"))
    assert twice == pytest.approx(2 * once)


@pytest.mark.parametrize("query", ["", "  ", "the of", "unheard", "[]", "\0"])
def test_a_query_without_known_terms_finds_nothing(query):
    assert Index.build(TEXTS).search(query) == []


def test_the_limit_cuts_equal_scores_by_id():
    index = Index.build({f"D{number:03d}": "same words" for number in range(120)})
    assert [id for id, _ in index.search("same", 50)] == [f"D{number:03d}" for number in range(50)]


@pytest.mark.parametrize(
    ("length", "stored"),
    # above 24, the four highest bits of the rest: 41 - 24 = 10001 -> 10000, 100 - 24 = 1001100 -> 1001000
    [(0, 0), (24, 24), (40, 40), (41, 40), (42, 42), (57, 56), (100, 96)],
)
def test_a_length_keeps_what_fits_in_lucenes_byte(length, stored):
    assert stored_length(length) == stored


def test_documents_may_have_no_terms():
    assert [id for id, _ in Index.build({"A": "", "B": "shoe"}).search("shoe")] == ["B"]


def same(one: Index, other: Index) -> bool:
    arrays = all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("starts", "documents", "saturation")
    )
    return arrays and one.ids == other.ids and dict(one.vocabulary) == dict(other.vocabulary)


def test_a_saved_index_is_the_same(tmp_path):
    built = Index.build(TEXTS)
    built.save(tmp_path / "index.npz")
    assert same(Index.load(tmp_path / "index.npz"), built)


def test_an_index_is_cached_by_content_and_a_broken_file_is_replaced(tmp_path):
    Index.cached(TEXTS, tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"broken")
    assert same(Index.cached(TEXTS, tmp_path), Index.build(TEXTS))
    assert same(Index.load(file), Index.build(TEXTS))
    Index.cached({**TEXTS, "B5": "more"}, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def _search_cached(folder):
    return Index.cached(TEXTS, folder).search("blue shirt")


def test_processes_that_build_the_same_index_at_once_all_get_it(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(_search_cached, [tmp_path] * 4, chunksize=1)
    assert found == [Index.build(TEXTS).search("blue shirt")] * 4
    assert len(list(tmp_path.iterdir())) == 1
