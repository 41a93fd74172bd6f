"""Compares what we compute with golden vectors, values and gradients, and prints a row for each file.

python -m tests.golden                                             the records that are kept in the repository
python -m tests.golden --dir ../shared/golden                      all files of a folder
python -m tests.golden --dir ../shared/golden --json               the same, a JSON object a line
python -m tests.golden --dir ../shared/golden --select             and renew the records that are kept
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden.compare import Row, compare
from tests.golden.comparisons import comparison_of
from tests.golden.vectors import SELECTION, golden_files, keep_selection, read

FOOT = """
compared   agrees within 1e-9 of max(1, |expected|), in float32 2e-6 (KL 2e-5), or what the row says; in float32 more
           where rewards are much larger than their spread, or exponents are large
different  the peer is known to be wrong there, or answers NaN: ours is finite and another
finite     there is no truth: ours is finite, blind to what stands off the mask, and 0 where no token is live"""
HEAD = ("records", "compared", "different", "finite", "skipped", "float64", "float32")


def main(words: Sequence[str] | None = None) -> int:
    """Prints the table; gives 1 when a file failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Compare with golden vectors.")
    parser.add_argument("--dir", type=Path, default=SELECTION, help="folder of golden files; default: the selection")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each file")
    parser.add_argument("--select", action="store_true", help="renew the selection from the folder")
    arguments = parser.parse_args(words)
    files = golden_files(arguments.dir)
    if not files:
        parser.error(f"no golden files in {arguments.dir}; name a folder of them")
    if not arguments.json:
        print(f"{'file':42}" + "".join(f" {word:>9}" for word in HEAD), "   (last two: worst relative error)")
    failed = 0
    for file, path in files.items():
        comparison = comparison_of(file)
        row = compare(file, read(path), comparison)
        failed += not row.passed
        print(json.dumps(row.as_json()) if arguments.json else "\n".join(_lines(row)))
        if arguments.select and not isinstance(comparison, str):
            keep_selection(path)
    if not arguments.json:
        print(FOOT, f"{len(files)} files, {failed} failed", sep="\n")
    return int(failed > 0)


def _lines(row: Row) -> Iterator[str]:
    counts = (row.records, row.compared, row.different, row.finite, sum(row.skipped.values()))
    errors = (f"{row.worst[dtype].error:.1e}" if dtype in row.worst else "-" for dtype in ("float64", "float32"))
    yield f"{row.file:42}" + "".join(f" {cell:>9}" for cell in (*counts, *errors)) + ("" if row.passed else "  FAILED")
    for problem in row.problems:
        yield f"    failed: {problem}"
    if row.why:
        yield f"    within {row.tolerance:.0e}: {row.why}"
    for reason, number in row.skipped.items():
        yield f"    skipped {number}: {reason}"
    for name, reason in row.left_out.items():
        yield f"    output {name}: {reason}"


if __name__ == "__main__":
    sys.exit(main())
