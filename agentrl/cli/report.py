"""Write one HTML file with everything about a run in it; of several runs, their comparison.

Runs that differ only in their seed count as one configuration, with an interval over seeds.
"""

import argparse
from pathlib import Path

from agentrl.cli.target import check_run
from agentrl.cli.terminal import say

EXAMPLE = "agentrl report runs/latest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folders")
    text = "where to write; report.html in the run's folder by default, of several runs ./comparison.html"
    parser.add_argument("--out", type=Path, metavar="FILE", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Writes the report; of several runs, prints their results as a table in Markdown too."""
    from agentrl.report import results_table, write_report

    runs: list[Path] = arguments.runs
    for path in runs:
        check_run(path)
    out = arguments.out or (runs[0] / "report.html" if len(runs) == 1 else Path("comparison.html"))
    report = write_report(runs, out)
    if len(runs) > 1:
        print(results_table(runs) + "\n")
    say(f"Report  {report}")
    return 0
