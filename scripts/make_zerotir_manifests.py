"""Writes what is known of the public math sets: how many problems, the hash of their ids, answers that are only text.

    python scripts/make_zerotir_manifests.py FOLDER

FOLDER holds the sets as JSON Lines. It takes minutes: every answer that is no integer is parsed.
"""

import argparse
import json
from pathlib import Path

import sympy

from agentrl.tasks import manifest_sha256
from agentrl_envs.zerotir import math_sets
from agentrl_envs.zerotir.boxes import as_integer
from agentrl_envs.zerotir.knights import read_roles
from agentrl_envs.zerotir.verdict import parsed


def is_text(answer: str) -> bool:
    """Tells whether math-verify reads an answer as text, so that only the very same text would be right."""
    if as_integer(answer) is not None or read_roles(answer):
        return False
    return not any(isinstance(one, sympy.Basic | sympy.MatrixBase) for one in parsed(answer))


def main() -> None:
    """Reads the folder and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    out = Path(math_sets.__file__).with_name("manifests.json")
    out.write_text("{}\n")  # what was known of the sets must not refuse the new ones
    found = {}
    for file in sorted(folder.glob("*.jsonl")):
        problems = math_sets.read_set(file)
        text = sorted(problem.id for problem in problems if is_text(problem.answer))
        found[file.stem] = {
            "num": len(problems),
            "sha256": manifest_sha256(sorted(problem.id for problem in problems)),
            "text": text,
        }
        print(f"{file.stem}: {len(problems)} problems, {len(text)} of which only as text")
    out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
