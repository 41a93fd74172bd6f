#!/usr/bin/env python
"""Writes what `agentrl envs check` compares tasks with: manifests of what is generated, and hashes of all manifests.

AGENTRL_DATA must name the real data. Tasks that are generated, and the public math sets, are listed in files beside
their environment; the official games and products have theirs from make_alfworld_manifests.py and
make_webshop_manifests.py, which are to be run first.
"""

import argparse
import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path

from agentrl.env import make, text_env
from agentrl.manifests import Entry, content_sha256, lines, manifest_of
from agentrl_envs.recorded import FILE
from agentrl_envs.zerotir import math_sets

NAMES = {
    "guess": ("agentrl/Guess-v0", {}),
    "alfworld_generated": ("agentrl/ALFWorld-v0", {}),
    "alfworld_official": ("agentrl/ALFWorld-v0", {"games": "official"}),
    "webshop_generated_product": ("agentrl/WebShop-v0", {}),
    "webshop_generated_original": ("agentrl/WebShop-v0", {"split_by": "original"}),
    "webshop_official_product": ("agentrl/WebShop-v0", {"products": "official"}),
    "webshop_official_original": ("agentrl/WebShop-v0", {"products": "official", "split_by": "original"}),
    "zerotir_arithmetic": ("agentrl/ZeroTIR-v0", {}),
    "zerotir_knights": ("agentrl/ZeroTIR-v0", {"source": "knights"}),
    "zerotir_math": ("agentrl/ZeroTIR-v0", {"source": "math"}),
}
LISTED = ("guess", "alfworld_generated", "zerotir_arithmetic", "zerotir_knights")
"""Those whose manifests are in no other file."""


def main() -> None:
    """Writes the files and says how long each manifest is."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found: dict[str, dict[str, str]] = {}
    for name, (id, options) in NAMES.items():
        env = text_env(make(id, **options))
        manifests = {split: manifest_of(env, split) for split in env.splits}
        found[name] = {split: content_sha256(manifest) for split, manifest in manifests.items()}
        print(name, {split: len(manifest) for split, manifest in manifests.items()})
        for split, manifest in manifests.items():
            if name in LISTED and (split, "train_1024" in manifests) != ("train", True):  # it begins with train_1024
                write(_folder(name) / f"{name}_{split}.txt.gz", manifest)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for path in sorted((Path(os.environ["AGENTRL_DATA"]) / "math").glob("*.jsonl")):
        problems = sorted(math_sets.read_set(path), key=lambda problem: problem.id)
        prints = [math_sets.problem_fingerprint(problem.question) for problem in problems]
        entries = [Entry(problem.id, print, print) for problem, print in zip(problems, prints, strict=True)]
        write(_folder("zerotir") / f"{path.stem}.txt.gz", entries)


def write(path: Path, manifest: Iterable[Entry]) -> None:
    """Writes a manifest, the same bytes for the same tasks."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines(manifest)).encode(), mtime=0))


def _folder(name: str) -> Path:
    package = name.partition("_")[0]
    return FILE.parent / ("" if package == "guess" else package) / "manifests"


if __name__ == "__main__":
    main()
