"""BM25 that ranks as Lucene does, to the last tie: k1 = 0.9, b = 0.4, lengths in one byte, equal scores by document id.

Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, in the form of Lucene 9's BM25Similarity:

    score(q, d) = sum over terms t of  count(t in q) * idf(t) * (1 - 1 / (1 + tf(t, d) * c(d)))
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)),    c(d) = 1 / (k1 * (1 - b + b * length(d) / mean length))

The mean is over exact lengths; length(d) is rounded down, above 40, to what one byte holds. Terms are float32, their
sums float64.
"""

import hashlib
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from agentrl_envs.webshop.analyzer import tokens

K1, B = 0.9, 0.4
VERSION = 1
"""Part of the name of a cached index; count it up when terms or scores change."""

_DENSE = 8
"""A term that more than one document in so many has is stored once more, by document."""
_FREE_LENGTHS = 24
"""Lengths up to this are themselves in Lucene's byte (SmallFloat.intToByte4)."""


@dataclass(frozen=True)
class Index:
    """An inverted index over documents sorted by id. P postings, D documents, V terms."""

    ids: tuple[str, ...]
    """Document ids, sorted. [D]"""
    vocabulary: Mapping[str, int]
    """Term -> its row in `starts`."""
    starts: np.ndarray
    """Where the postings of each term start, and at last P. int64 [V + 1]"""
    documents: np.ndarray
    """Document numbers of the postings, rising within a term. int32 [P]"""
    saturation: np.ndarray
    """1 + tf * c of each posting. float32 [P]"""

    @classmethod
    def build(cls, texts: Mapping[str, str]) -> "Index":
        """Indexes documents, given as id -> text."""
        ids = tuple(sorted(texts))
        vocabulary: dict[str, int] = {}
        terms: list[int] = []
        documents: list[int] = []
        counts: list[int] = []
        lengths = np.zeros(len(ids), np.int64)
        for number, id in enumerate(ids):
            found = tokens(texts[id])
            lengths[number] = len(found)
            for term, count in Counter(found).items():
                terms.append(vocabulary.setdefault(term, len(vocabulary)))
                documents.append(number)
                counts.append(count)
        order = np.argsort(np.array(terms, np.int64), kind="stable")
        starts = np.zeros(len(vocabulary) + 1, np.int64)
        np.cumsum(np.bincount(np.array(terms, np.int64), minlength=len(vocabulary)), out=starts[1:])
        numbers = np.array(documents, np.int32)[order]
        saturation = _saturation(np.array(counts, np.float32)[order], lengths, numbers)
        return cls(ids, vocabulary, starts, numbers, saturation)

    @classmethod
    def cached(cls, texts: Mapping[str, str], folder: Path) -> "Index":
        """Gives the index of these documents, built once and kept in `folder`; any number of processes may ask."""
        path = folder / f"webshop_index_{_fingerprint(texts)}.npz"
        try:
            return cls.load(path)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):  # not there, or broken: the next line mends both
            index = cls.build(texts)
        index.save(path)
        return index

    @classmethod
    def load(cls, path: Path) -> "Index":
        """Reads what `save` wrote."""
        with np.load(path) as stored:
            lines = {name: bytes(stored[name]).decode().split("\n") for name in ("ids", "vocabulary")}
            vocabulary = {term: number for number, term in enumerate(lines["vocabulary"]) if term}
            arrays = (stored[name] for name in ("starts", "documents", "saturation"))
            return cls(tuple(id for id in lines["ids"] if id), vocabulary, *arrays)

    def save(self, path: Path) -> None:
        """Writes the index; the file appears whole or not at all, whoever writes it at the same time."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            unfinished = Path(folder, path.name)
            np.savez(
                unfinished,
                ids=np.frombuffer("\n".join(self.ids).encode(), np.uint8),
                vocabulary=np.frombuffer("\n".join(self.vocabulary).encode(), np.uint8),
                starts=self.starts,
                documents=self.documents,
                saturation=self.saturation,
            )
            unfinished.replace(path)

    def search(self, query: str, limit: int = 50) -> list[tuple[str, float]]:
        """Gives the ids and scores of the best documents, best first; no document without a term of the query."""
        scores = np.zeros(len(self.ids))
        for term, count in Counter(tokens(query)).items():
            row = self.vocabulary.get(term)
            if row is None:
                continue
            postings = slice(self.starts[row], self.starts[row + 1])
            weight = np.float32(count) * self._idf(postings.stop - postings.start)
            if row in self._dense:
                scores += weight - weight / self._dense[row]
            else:
                scores[self.documents[postings]] += weight - weight / self.saturation[postings]
        rounded = scores.astype(np.float32)
        return [(self.ids[number], float(rounded[number])) for number in _best(rounded, limit)]

    @cached_property
    def _dense(self) -> Mapping[int, np.ndarray]:
        """Rows of terms that many documents have, over all documents (1, which adds no score, elsewhere): faster."""
        sizes = np.diff(self.starts)
        rows = {int(row): np.ones(len(self.ids), np.float32) for row in np.flatnonzero(sizes * _DENSE > len(self.ids))}
        for row, values in rows.items():
            postings = slice(self.starts[row], self.starts[row + 1])
            values[self.documents[postings]] = self.saturation[postings]
        return rows

    def _idf(self, num_documents: int) -> np.float32:
        rest = len(self.ids) - num_documents
        return np.float32(np.log(1 + (rest + 0.5) / (num_documents + 0.5)))


def _best(scores: np.ndarray, limit: int) -> Sequence[int]:
    """Gives the positions of the highest positive scores, equal ones in order."""
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit] if len(scores) > limit else 0.0
    found = np.flatnonzero((scores >= least) & (scores > 0))
    return found[np.argsort(-scores[found], kind="stable")][:limit].tolist()


def _saturation(counts: np.ndarray, lengths: np.ndarray, documents: np.ndarray) -> np.ndarray:
    mean = np.float32(lengths.sum() / max(len(lengths), 1))
    stored = np.array([stored_length(int(length)) for length in lengths], np.float32)
    k1, b, one = np.float32(K1), np.float32(B), np.float32(1)
    inverse = one / (k1 * ((one - b) + b * stored / max(mean, one)))
    return one + counts * inverse[documents]


def stored_length(length: int) -> int:
    """Gives what is left of a document's length in Lucene's one byte: of what exceeds 24, the highest four bits."""
    rest = max(length - _FREE_LENGTHS, 0)
    drop = max(rest.bit_length() - 4, 0)
    return min(length, _FREE_LENGTHS) + (rest >> drop << drop)


def _fingerprint(texts: Mapping[str, str]) -> str:
    digest = hashlib.sha256(f"{VERSION}".encode())
    for part in _flat(sorted(texts.items())):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _flat(pairs: Iterable[tuple[str, str]]) -> Iterable[str]:
    return (part for pair in pairs for part in pair)
