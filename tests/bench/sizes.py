"""`python -m tests.bench.sizes [SIZE ...]`: what both libraries take at sizes that users have.

Each operation runs once, in a process of its own, on a table that this library wrote, or on a copy if it changes the
table. The printed table has the seconds of the operation without imports, and the most memory that the process took.
These runs take minutes and are not compared in turns, so small differences mean nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

CONTENDERS = ("lance", "lance_ops")

Operation = Callable[[ModuleType, str], object]


def _rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table({"id": numbers, "v": np.sqrt(numbers), "s": pa.array(numbers % 1000).cast(pa.string())})


def _batches(num_rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, num_rows, batch_rows):
        yield from _rows(start, min(start + batch_rows, num_rows)).to_batches()


def _wide(num_columns: int) -> pa.Table:
    return pa.table({f"c{number}": np.arange(1000) + number for number in range(num_columns)})


def _write_fragments(lib: ModuleType, uri: str) -> None:
    reader = pa.RecordBatchReader.from_batches(_rows(0, 1).schema, _batches(1_000_000, 100_000))
    lib.write_dataset(reader, uri, max_rows_per_file=100)


def _write_versions(lib: ModuleType, uri: str) -> None:
    dataset = lib.write_dataset(_rows(0, 1000), uri)
    for number in range(49_999):
        dataset.update_config({"number": str(number)})


def _write_rows(lib: ModuleType, uri: str) -> None:
    reader = pa.RecordBatchReader.from_batches(_rows(0, 1).schema, _batches(100_000_000, 1_000_000))
    lib.write_dataset(reader, uri, max_rows_per_file=5_000_000)


def _scan(lib: ModuleType, uri: str, **options: Any) -> None:
    for _ in lib.dataset(uri).to_batches(**options):
        pass


@dataclass(frozen=True)
class Size:
    """A table of one size, the function that writes it, and operations by name."""

    write: Operation
    reads: dict[str, Operation]
    changes: dict[str, Operation]


SIZES = {
    "10,000 fragments": Size(
        _write_fragments,
        {
            "open": lambda lib, uri: lib.dataset(uri).schema,
            "count": lambda lib, uri: lib.dataset(uri).count_rows(),
            "scan one column": lambda lib, uri: _scan(lib, uri, columns=["v"]),
            "filter 0.1%": lambda lib, uri: lib.dataset(uri).to_table(filter="s = '77'"),
            "take 100": lambda lib, uri: lib.dataset(uri).take(list(range(0, 1_000_000, 10_000))),
            "last rows by offset": lambda lib, uri: lib.dataset(uri).to_table(offset=999_990, limit=5),
        },
        {
            "append a row": lambda lib, uri: lib.dataset(uri).insert(_rows(0, 1)),
            "delete a row": lambda lib, uri: lib.dataset(uri).delete("id = 500000"),
            "BTREE": lambda lib, uri: lib.dataset(uri).create_scalar_index("id", "BTREE"),
            "compact": lambda lib, uri: lib.dataset(uri).optimize.compact_files(),
        },
    ),
    "10,000 columns": Size(
        lambda lib, uri: lib.write_dataset(_wide(10_000), uri),
        {
            "open": lambda lib, uri: lib.dataset(uri).schema,
            "scan one column": lambda lib, uri: _scan(lib, uri, columns=["c5000"]),
            "scan": _scan,
            "take 10": lambda lib, uri: lib.dataset(uri).take(list(range(0, 1000, 100))),
        },
        {
            "append": lambda lib, uri: lib.dataset(uri).insert(_wide(10_000)),
            "delete a row": lambda lib, uri: lib.dataset(uri).delete("c0 = 500"),
        },
    ),
    "50,000 versions": Size(
        _write_versions,
        {
            "open": lambda lib, uri: lib.dataset(uri).schema,
            "open version 777": lambda lib, uri: lib.dataset(uri, version=777).schema,
            "list versions": lambda lib, uri: lib.dataset(uri).versions(),
        },
        {
            "append a row": lambda lib, uri: lib.dataset(uri).insert(_rows(0, 1)),
            "clean up": lambda lib, uri: lib.dataset(uri).cleanup_old_versions(timedelta(0)),
        },
    ),
    "100 million rows": Size(
        _write_rows,
        {
            "open": lambda lib, uri: lib.dataset(uri).schema,
            "scan one column": lambda lib, uri: _scan(lib, uri, columns=["v"]),
            "filter 0.1%": lambda lib, uri: lib.dataset(uri).to_table(filter="s = '77'"),
            "take 1,000": lambda lib, uri: lib.dataset(uri).take(list(range(0, 100_000_000, 100_000))),
        },
        {
            "delete 1%": lambda lib, uri: lib.dataset(uri).delete("id % 100 = 7"),
            "BTREE": lambda lib, uri: lib.dataset(uri).create_scalar_index("id", "BTREE"),
        },
    ),
}


def main() -> None:
    """Run every operation of the chosen sizes and print a table of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sizes", description=__doc__)
    parser.add_argument("sizes", nargs="*", help=f"of {', '.join(map(repr, SIZES))}; default all")
    parser.add_argument("--one", nargs=4, metavar=("SIZE", "OPERATION", "LIBRARY", "URI"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measured(*arguments.one)))
        return
    for name in arguments.sizes or SIZES:
        with tempfile.TemporaryDirectory(prefix="lance-ops-sizes-") as scratch:
            _measure_size(name, Path(scratch))


def _measure_size(name: str, scratch: Path) -> None:
    print(f"\n## {name}\n\n| | lance, s | MiB | lance_ops, s | MiB |\n|---|---|---|---|---|", flush=True)
    size, table = SIZES[name], scratch / "table.lance"
    for operation in ("write", *size.reads, *size.changes):
        cells: list[str] = []
        for library in CONTENDERS:
            uri = scratch / f"{library}.lance" if operation not in size.reads else table
            if operation in size.changes:
                shutil.copytree(table, uri)
            cells += _in_a_process(name, operation, library, str(uri))
            if operation == "write" and library == "lance_ops":
                uri.rename(table)
            elif uri != table:
                shutil.rmtree(uri)
        print(f"| {operation} | {' | '.join(cells)} |", flush=True)


def _in_a_process(name: str, operation: str, library: str, uri: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "tests.bench.sizes", "--one", name, operation, library, uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return "failed", done.stderr.strip().splitlines()[-1][:60] if done.stderr.strip() else str(done.returncode)
    seconds, mebibytes = json.loads(done.stdout.splitlines()[-1])
    return f"{seconds:.3g}", f"{mebibytes:,.0f}"


def _measured(name: str, operation: str, library: str, uri: str) -> tuple[float, float]:
    lib = __import__(library)
    size = SIZES[name]
    call = size.write if operation == "write" else {**size.reads, **size.changes}[operation]
    start = time.perf_counter()
    call(lib, uri)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
