"""Which games make up each official split, and what is in them."""

import gzip
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agentrl.errors import NotFound, did_you_mean

SIZES = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
"""Official split -> its number of games."""

_FOLDER = Path(__file__).parent / "manifests"


@cache
def read_manifest(split: str) -> Mapping[str, str]:
    """Gives the sha256 of the `game.tw-pddl` of every game of a split by id, sorted by id.

    Raises:
        NotFound: No official split is called so.
    """
    if split not in SIZES:
        raise NotFound(f"ALFWorld has no split {split!r}; it has {', '.join(SIZES)}.{did_you_mean(split, SIZES)}")
    lines = gzip.decompress(_path(split).read_bytes()).decode().splitlines()
    return dict(line.split() for line in lines)


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
