#!/usr/bin/env python
"""Writes the manifests of WebShop's 1,000 products and of the default generated catalogue, both ways of splitting."""

import argparse
import sys
from pathlib import Path

from agentrl.errors import AgentRLError
from agentrl_envs.webshop import manifests
from agentrl_envs.webshop.source import Source, load_shop
from agentrl_envs.webshop.splits import SplitBy, split_ids


def main() -> int:
    """Hashes every request and writes a manifest for each way of splitting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="folder of the official products")
    arguments = parser.parse_args()
    ways: tuple[SplitBy, ...] = ("product", "original")
    try:
        shops = {"official": load_shop(Source("files", arguments.source)), "generated": load_shop(Source())}
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    for products, shop in shops.items():
        for way in ways:
            splits = split_ids(shop.goals, way)
            path = manifests.write(f"{products}_{way}", shop, splits)
            sizes = ", ".join(f"{split} {len(ids):,}" for split, ids in splits.items())
            print(f"{path.name}: {sizes}; {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
