#!/usr/bin/env python
"""Puts ALFWorld's official games where agentrl finds them, as one checked index file (18 MB).

pip install alfworld && alfworld-download         # gets them from GitHub
scripts/get_alfworld.py                           # reads them from where alfworld-download put them
scripts/get_alfworld.py --from json_2.1.1.tar.xz --to DATA/alfworld
"""

import argparse
import os
import sys
from pathlib import Path

from agentrl.errors import AgentRLError
from agentrl_envs.alfworld.archive import INDEX_NAME, find_data
from agentrl_envs.alfworld.manifests import SIZES
from agentrl_envs.alfworld.store import GameStore, build_index, is_index


def main() -> int:
    """Builds the index, checks the three splits, and says what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, help="folder or archive with the game.tw-pddl files")
    parser.add_argument("--to", type=Path, default=Path.home() / ".cache" / "alfworld", help="folder of the index file")
    arguments = parser.parse_args()
    target = arguments.to / INDEX_NAME
    try:
        source = find_data(arguments.source, os.environ)
        if not is_index(source):
            build_index(source, target)
        store = GameStore(source if is_index(source) else target)
        for split in SIZES:
            tasks = store.task_set(split)
            print(f"{split}: {len(tasks)} games, sha256 {tasks.sha256}")
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{store.path}: {len(store.hashes)} games")
    return 0


if __name__ == "__main__":
    sys.exit(main())
