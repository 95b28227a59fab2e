"""`python -m tests.bench.tables [WORD ...]`: ours against pylance on tables that grow; writes `docs/bench-tables.*`.

Only a whole run replaces what `docs/` holds; a run of some cases prints, and writes where `--out` says.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measuring import compile_kernels
from tests.bench.report import report
from tests.bench.results import Cell, Run
from tests.bench.setting import setting
from tests.bench.tables.cases import LARGE, USUAL, cases_chosen
from tests.bench.tables.chart import chart
from tests.bench.tables.page import page
from tests.bench.tables.rounds import measure

_DOCS = Path(__file__).parents[3] / "docs"


def main() -> None:
    """Measure, print the report, and write the page and the chart of a whole run."""
    arguments = _arguments()
    words = " ".join(arguments.words).replace(",", " ").split()
    cases = cases_chosen(LARGE if arguments.large else USUAL, words)
    load_before = os.getloadavg()[0]
    compile_kernels()
    start = time.monotonic()
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="lance-ops-bench-") as scratch:
        for cell in measure(cases, Path(scratch), scale=arguments.scale, seconds=arguments.seconds):
            cells.append(cell)
            print(f"[{time.monotonic() - start:4.0f} s] {cell.case}", file=sys.stderr)
    took = time.monotonic() - start
    run = Run(setting(load_before, took, arguments.scale, measured_on="all"), tuple(cells))
    print(report(run))
    whole = not words and arguments.scale == 1.0
    out = arguments.out or (_DOCS if whole else None)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "bench-tables.md").write_text(page(run))
        (out / "bench-tables.svg").write_text(chart(run))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tables", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the cases' names: columns, scan, fragments/40/1%%/scan")
    parser.add_argument("--large", action="store_true", help="also 10,000 fragments and 50,000 versions")
    parser.add_argument("--scale", type=float, default=1.0, help="times the default number of rows")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long rounds of one case go on, beyond five")
    parser.add_argument("--out", type=Path, help="folder for bench-tables.md and bench-tables.svg")
    return parser.parse_args()


if __name__ == "__main__":
    main()
