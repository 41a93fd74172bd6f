#!/usr/bin/env python
"""Makes a catalogue in WebShop's file format: items_shuffle.json, items_ins_v2.json and items_human_ins.json.

scripts/make_webshop.py DATA/webshop --products 100000
agentrl play agentrl/WebShop-v0 --option products=files data=DATA/webshop
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from agentrl.errors import AgentRLError
from agentrl_envs.webshop.generate import Knobs, generate


def main() -> int:
    """Writes the three files and says what is in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="gets the files; made when it is not there")
    parser.add_argument("--products", type=int, default=Knobs().num_products, help="how many; 1000 by default")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other products; 0 by default")
    arguments = parser.parse_args()
    try:
        files = generate(replace(Knobs(), num_products=arguments.products, catalogue_seed=arguments.seed))
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    contents = {
        "items_shuffle.json": files.items,
        "items_ins_v2.json": files.attributes,
        "items_human_ins.json": files.human,
    }
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = arguments.folder / name
        path.write_text(json.dumps(content), encoding="utf-8")
        print(f"{path}: {len(content):,} entries, {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
