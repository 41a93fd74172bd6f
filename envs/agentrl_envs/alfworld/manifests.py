"""Which games make up each official split, and what is in them."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agentrl.errors import NotFound, did_you_mean

SIZES = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
"""Official split -> its number of games."""
SUBSET = "train_1024"
"""A split of ours: the training games whose ids have the 1,024 smallest hashes, few enough to be seen several times."""
_NUM_SUBSET = 1024

_FOLDER = Path(__file__).parent / "manifests"


@cache
def read_manifest(split: str) -> Mapping[str, str]:
    """Gives the sha256 of the `game.tw-pddl` of every game of a split by id, sorted by id.

    Raises:
        NotFound: No official split is called so.
    """
    known = [*SIZES, SUBSET]
    if split not in known:
        raise NotFound(f"ALFWorld has no split {split!r}; it has {', '.join(known)}.{did_you_mean(split, known)}")
    lines = gzip.decompress(_path(split).read_bytes()).decode().splitlines()
    return dict(line.split() for line in lines)


def subset(hashes: Mapping[str, str]) -> dict[str, str]:
    """Gives which of the training games are in SUBSET; it depends on their ids alone."""
    chosen = sorted(hashes, key=lambda id: hashlib.sha256(id.encode()).digest())[:_NUM_SUBSET]
    return {id: hashes[id] for id in sorted(chosen)}


def write_manifest(split: str, hashes: Mapping[str, str]) -> Path:
    """Writes the manifest of a split, the same bytes for the same games, and gives its path."""
    text = "".join(f"{line}\n" for line in manifest_lines(hashes))
    _path(split).write_bytes(gzip.compress(text.encode(), mtime=0))
    return _path(split)


def manifest_lines(hashes: Mapping[str, str]) -> list[str]:
    """Gives the lines of a manifest, `id sha256`; their hash is the task set's."""
    return [f"{id} {hashes[id]}" for id in sorted(hashes)]


def _path(split: str) -> Path:
    return _FOLDER / f"{split}.txt.gz"
