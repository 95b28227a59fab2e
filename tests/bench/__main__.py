"""`python -m tests.bench [CASE ...]`: ours against pylance and Parquet; see `docs/bench.md`.

Only a whole run replaces what `docs/` holds; a run of some cases prints, and writes where `--out` says.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.cases import ALL_CASES, Case, cases_named
from tests.bench.chart import chart
from tests.bench.measuring import compile_kernels
from tests.bench.pairing import measure_all
from tests.bench.report import report
from tests.bench.results import VERSIONS, Cell, Run
from tests.bench.setting import setting
from tests.bench.table_cases import ALL_TABLE_CASES, TableCase
from tests.bench.table_pairing import measure_tables

_DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    """Measure, print the report, and write the results of a whole run."""
    arguments = _arguments()
    cases, tables = _chosen(" ".join(arguments.cases))
    versions = tuple(version for version in VERSIONS if version in arguments.versions.replace(",", " ").split())
    if not versions:
        sys.exit(f"--versions knows {', '.join(VERSIONS)}")
    load_before = os.getloadavg()[0]
    compile_kernels()
    start = time.monotonic()
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="lance-ops-bench-") as scratch:
        for cell in measure_tables(tables, Path(scratch), scale=arguments.scale, seconds=arguments.seconds):
            cells.append(cell)
            print(f"[{time.monotonic() - start:4.0f} s] {cell.case}", file=sys.stderr)
        for cell in measure_all(cases, versions, Path(scratch), scale=arguments.scale, seconds=arguments.seconds):
            cells.append(cell)
            if cell.operation == "size":
                print(f"[{time.monotonic() - start:4.0f} s] {cell.case} {cell.version}", file=sys.stderr)
    run = Run(setting(load_before, time.monotonic() - start, arguments.scale), tuple(cells))
    print(report(run))
    whole = (cases, tables, versions, arguments.scale) == (ALL_CASES, ALL_TABLE_CASES, VERSIONS, 1.0)
    out = arguments.out or (_DOCS if whole else None)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "bench.json").write_text(json.dumps(run.to_json(), indent=1) + "\n")
        if run.of_files.cells:
            (out / "bench.svg").write_text(chart(run.of_files))


def _chosen(names: str) -> tuple[tuple[Case, ...], tuple[TableCase, ...]]:
    """Return the cases of either kind that a list names; all of them if it is empty."""
    wanted = names.replace(",", " ").split()
    tables = {case.name: case for case in ALL_TABLE_CASES}
    if not wanted:
        return ALL_CASES, ALL_TABLE_CASES
    others = " ".join(name for name in wanted if name not in tables)
    chosen = tuple(tables[name] for name in wanted if name in tables)
    return cases_named(others) if others else (), chosen


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", help=f"of {', '.join(case.name for case in (*ALL_CASES, *ALL_TABLE_CASES))}; default all"
    )
    parser.add_argument("--versions", default=",".join(VERSIONS), help="file versions, by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="times the default number of rows")
    parser.add_argument("--seconds", type=float, default=0.6, help="how long rounds of one cell go on, beyond five")
    parser.add_argument("--out", type=Path, help="folder for bench.json and bench.svg")
    return parser.parse_args()


if __name__ == "__main__":
    main()
