"""`python -m tests.bench.spark [WORD ...]`: ours against Spark's Parquet and pylance; writes `docs/bench-spark.md`.

Only a whole run replaces what `docs/` holds; a run of some cases prints.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from lance_ops.spark import get_or_create
from lance_ops.spark.session import DAEMON_MODULE
from tests.bench.measuring import compile_kernels
from tests.bench.setting import setting
from tests.bench.spark.cases import ALL_CASES, FRAGMENTS_TO_COMPACT, Bench
from tests.bench.spark.page import page
from tests.bench.spark.rounds import Measured, measure

_PAGE = Path(__file__).parents[3] / "docs" / "bench-spark.md"
_ROWS = 2_000_000


def main() -> None:
    """Measure, print the page, and write it after a whole run."""
    arguments = _arguments()
    words = " ".join(arguments.words).replace(",", " ").split()
    cases = [case for case in ALL_CASES if not words or any(word in case.name for word in words)]
    num_rows = round(_ROWS * arguments.scale)
    load_before = os.getloadavg()[0]
    compile_kernels()
    start = time.monotonic()
    results: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="lance-ops-bench-") as scratch:
        bench = Bench(partial(_session, scratch), Path(scratch), num_rows)
        bench.prepare()
        for measured in measure(bench, cases, warm_rounds=arguments.rounds, other_rounds=arguments.cold_rounds):
            results.append(measured)
            took = time.monotonic() - start
            print(f"[{took:4.0f} s] {measured.case}, {measured.state}: {measured.ratio:.2f}", file=sys.stderr)
        bench.session.stop()
    facts = setting(load_before, time.monotonic() - start, arguments.scale, measured_on="all")
    facts["pyspark"] = version("pyspark")
    shown = page(facts, results, num_rows=num_rows, num_fragments=FRAGMENTS_TO_COMPACT)
    print(shown)
    if not words and arguments.scale == 1.0:
        _PAGE.write_text(shown)


def _session(scratch: str, plain_workers: bool) -> SparkSession:
    # Spark's Python workers start from the JVM: they find this checkout by PYTHONPATH only. They keep bytecode, as an
    # installation does; otherwise a cold worker would compile this library, and Parquet's would compile nothing.
    os.environ["PYTHONPATH"] = str(_PAGE.parents[1])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = f"{scratch}/bytecode"
    local = {"spark.driver.memory": "2g", "spark.local.dir": f"{scratch}/local"}
    local["spark.python.daemon.module"] = "pyspark.daemon" if plain_workers else DAEMON_MODULE
    session = get_or_create("lance-ops bench", master="local[2]", config=local)
    session.sparkContext.setLogLevel("ERROR")
    return session


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the cases' names: ingest, column")
    parser.add_argument("--scale", type=float, default=1.0, help=f"times {_ROWS:,} rows")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of rounds with warm workers")
    parser.add_argument("--cold-rounds", type=int, default=3, help="pairs of rounds with idle and cold workers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
