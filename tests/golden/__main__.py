"""Compares our algorithms with golden vectors and prints a line per file.

python -m tests.golden ../shared/golden           compare
python -m tests.golden ../shared/golden --select  and renew the records that are kept in the repository
"""

import argparse
import sys
from pathlib import Path

from tests.golden.comparisons import OURS, compare
from tests.golden.vectors import SELECTION, keep_selection, read


def main() -> int:
    """Prints the table; gives 1 when a file's error is too large."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Compare with golden vectors.")
    parser.add_argument("folder", type=Path, nargs="?", default=SELECTION, help="golden files; default: the selection")
    parser.add_argument("--select", action="store_true", help="renew the selection from the folder")
    arguments = parser.parse_args()
    print(f"{'file':45} {'compared':>8} {'finite':>6} {'not ours':>8} {'worst error':>11}")
    failed = 0
    for file in OURS:
        (path,) = arguments.folder.glob(f"{file}.json*")
        result = compare(file, read(path))
        failed += not result.passed
        where = "" if result.passed else f"  FAILED in {result.worst_case}"
        print(f"{file:45} {result.compared:8} {result.finite:6} {result.not_ours:8} {result.worst:11.1e}{where}")
        if arguments.select:
            keep_selection(path)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
