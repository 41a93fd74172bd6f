#!/usr/bin/env python
"""Writes the manifests of ALFWorld's official splits (id and sha256 of every game) from the games themselves."""

import argparse
import hashlib
import os
import sys
from pathlib import Path

from agentrl.errors import AgentRLError, DataError
from agentrl_envs.alfworld.archive import find_data, read_games
from agentrl_envs.alfworld.manifests import SIZES, SUBSET, subset, write_manifest


def main() -> int:
    """Hashes every game and writes one manifest per split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="folder or archive with the game.tw-pddl files")
    try:
        make_manifests(find_data(parser.parse_args().source, os.environ))
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def make_manifests(source: Path) -> None:
    """Writes the manifest of every official split.

    Raises:
        DataError: A split does not have as many games as it should.
    """
    hashes: dict[str, dict[str, str]] = {split: {} for split in SIZES}
    for id, raw in read_games(source):
        split = id.split("/")[0]
        if split in hashes:
            hashes[split][id] = hashlib.sha256(raw).hexdigest()
    counts = {split: len(games) for split, games in hashes.items()}
    if counts != SIZES:
        raise DataError(f"{source}: has {counts} games where the official splits have {SIZES}")
    for split, games in [*hashes.items(), (SUBSET, subset(hashes["train"]))]:
        path = write_manifest(split, games)
        print(f"{path}: {len(games)} games, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
