#!/usr/bin/env python
"""Puts WebShop's files of 1,000 products where agentrl finds them, and checks them against the manifests.

WebShop's own setup.sh downloads items_shuffle_1000.json, items_ins_v2_1000.json and items_human_ins.json to its folder
data (https://github.com/princeton-nlp/WebShop). Then:

scripts/get_webshop.py --from WebShop/data
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from agentrl.env import make, text_env
from agentrl.errors import AgentRLError
from agentrl_envs.webshop.env import WebShop
from agentrl_envs.webshop.files import find_items

PATTERNS = ("items_shuffle_1000.json", "items_ins_v2_1000.json", "items_human_ins.json", "title_nouns_1000.json")


def main() -> int:
    """Copies the files, checks every request, and says what the best reward is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--from", dest="source", type=Path, help="folder that has the files; else where they usually are"
    )
    target = Path.home() / ".cache" / "agentrl" / "webshop"
    parser.add_argument("--to", type=Path, default=target, help=f"folder that gets them; {target} by default")
    arguments = parser.parse_args()
    try:
        source = find_items(arguments.source, os.environ).parent
        _tell(source)
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    if source.resolve() != arguments.to.resolve():
        arguments.to.mkdir(parents=True, exist_ok=True)
        for name in PATTERNS:
            if (source / name).is_file():
                shutil.copyfile(source / name, arguments.to / name)
    print(f"{arguments.to}: ready; set env.options: {{products: official}}")
    return 0


def _tell(folder: Path) -> None:
    """Prints the splits and their ceilings.

    Raises:
        DataError: The requests are not the official ones.
    """
    env = text_env(make("agentrl/WebShop-v0", products="official", data=folder))
    assert isinstance(env, WebShop)
    for split in env.splits:
        tasks, best = env.task_set(split), env.ceiling(split)
        reach = f"best score {100 * best['score']:.1f}, best success {100 * best['success']:.1f} %"
        print(f"{split}: {len(tasks)} requests, {reach}, sha256 {tasks.sha256}")


if __name__ == "__main__":
    sys.exit(main())
