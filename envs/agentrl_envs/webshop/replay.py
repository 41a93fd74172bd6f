"""Plays records of the original again and compares everything: `python -m agentrl_envs.webshop.replay DIR`.

DIR holds golden_*.json; a file's keys tell what it records: `cases` rewards, `runs` pages on products of its own,
`meta.n_synthetic` goals, `search` and `analysis` the search engine, `episodes` episodes on the real products. Those are
read from DIR, or from where --products says, or from where they usually are.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from agentrl.errors import AgentRLError, DataError
from agentrl_envs.webshop.files import Files, Requests, find_items, make_shop
from agentrl_envs.webshop.recorded_episodes import compare_pages, compare_trajectories
from agentrl_envs.webshop.recordings import Differences, Shops, compare_goals, compare_rewards, compare_searches
from agentrl_envs.webshop.shop import Shop

_SHOWN = 5


def compare(content: dict[str, Any], shops: Shops) -> Iterator[Differences]:
    """Gives the differences of every record of a file.

    Raises:
        ValueError: The file is of no known kind.
    """
    if "runs" in content:
        return compare_pages(content)
    if "cases" in content:
        return compare_rewards(content, shops)
    if "n_synthetic" in content.get("meta", {}):
        return compare_goals(content, shops)
    if "search" in content or "analysis" in content:
        return compare_searches(content, shops)
    if "episodes" in content:
        return compare_trajectories(content, shops)
    raise ValueError(f"of no known kind; its keys are {', '.join(content)}")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; gives 1 when anything differs or cannot be compared."""
    parser = argparse.ArgumentParser(prog="python -m agentrl_envs.webshop.replay", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of golden_*.json")
    parser.add_argument("--products", type=Path, help="folder or file of the real products; else DIR has them")
    options = parser.parse_args(arguments)
    try:
        return int(not _replay_folder(options.folder, options.products))
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1


def _replay_folder(folder: Path, products: Path | None) -> bool:
    paths = sorted(folder.glob("golden_*.json"))
    if not paths:
        raise DataError(f"{folder}: no golden_*.json in it; give a folder of recordings")

    @cache
    def files() -> Files:
        has_products = products is None and any(folder.glob("items_shuffle*.json"))
        return Files.read(find_items(folder if has_products else products, os.environ))

    @cache
    def shops(requests: Requests) -> Shop:
        return make_shop(files().products, files().nouns, requests=requests)

    return all([_replay_file(path, shops) for path in paths])


def _replay_file(path: Path, shops: Shops) -> bool:
    try:
        found = list(compare(json.loads(path.read_text(encoding="utf-8")), shops))
    except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError) as error:
        raise DataError(f"{path}: no recording of WebShop ({type(error).__name__}: {error})") from error
    wrong = [record for record in found if record]
    for line in [line for record in wrong for line in record][:_SHOWN]:
        print(line)
    print(f"{path.name}: {len(found)} records, {len(wrong)} mismatches")
    return bool(found) and not wrong


if __name__ == "__main__":
    sys.exit(main())
