"""`python -m tests.bench.sizes [SIZE ...]`: what both libraries take at sizes that users have.

Each operation runs once, in a process of its own, on a table that this library wrote, or on a copy if it changes the
table. A run replaces the tables of its sizes in `docs/bench-sizes.md`, and leaves the others as they were.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.measuring import compile_kernels
from tests.bench.results import geometric_mean
from tests.bench.setting import setting

CONTENDERS = ("lance", "lance_ops")
_FAILED = "failed: "
_FIRST_USES = 20
"""numpy answers the first calls of each of our kernels, twelve at most, and the compiled kernel the others."""
PAGE = Path(__file__).parents[2] / "docs" / "bench-sizes.md"

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


@dataclass(frozen=True)
class Taken:
    """What one operation took; `error` says why it did not end well."""

    seconds: float
    mebibytes: float
    error: str | None = None

    def __str__(self) -> str:
        return f"{_FAILED}{self.error} | -" if self.error else f"{self.seconds:.3g} | {self.mebibytes:,.0f}"


Pair = Mapping[str, Taken]
"""What an operation took, by contender."""


@dataclass(frozen=True)
class Measured:
    """What the operations of one size took, and a line that says when and where."""

    setting: str
    operations: Mapping[str, Pair]


def main() -> None:
    """Measure the chosen sizes, print a table of each, and write it into the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sizes", description=__doc__)
    parser.add_argument("sizes", nargs="*", help=f"of {', '.join(map(repr, SIZES))}; default all")
    parser.add_argument("--one", nargs=4, metavar=("SIZE", "OPERATION", "LIBRARY", "URI"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measured(*arguments.one)))
        return
    compile_kernels()
    sizes = recorded(PAGE.read_text(encoding="utf-8"))
    for name in arguments.sizes or SIZES:
        print("\n".join(_heading(name)), flush=True)
        load, begin, operations = os.getloadavg()[0], time.monotonic(), dict[str, Pair]()
        with tempfile.TemporaryDirectory(prefix="lance-ops-sizes-") as scratch:
            for operation, pair in _measure_size(name, Path(scratch)):
                operations[operation] = pair
                print(_row(operation, pair), flush=True)
        described = setting(load, time.monotonic() - begin, 1, measured_on="all")
        sizes[name] = Measured(_line(described), operations)
        PAGE.write_text(page(sizes), encoding="utf-8")


def page(sizes: Mapping[str, Measured]) -> str:
    """Return the page in Markdown: what is slower than the reference first, then the tables."""
    ratios = {
        f"{name}: {operation}": pair["lance"].seconds / pair["lance_ops"].seconds
        for name, measured in sizes.items()
        for operation, pair in measured.operations.items()
        if not any(taken.error for taken in pair.values())
    }
    slower = [f"{name} ({ratio:.2f})" for name, ratio in sorted(ratios.items(), key=lambda item: item[1]) if ratio < 1]
    lines = [
        "# Sizes that users have",
        "",
        "`python -m tests.bench.sizes` writes this page. Each operation runs once for each library, in a process of",
        "its own, on a table that this library wrote, or on a copy if it changes it. A copy has one commit more,",
        "and is on the disk before the operation begins. Seconds are those of the operation after some use of the",
        f"library on 400 fragments ({_FIRST_USES} appends, filters and takes), so that imports and compiled code are",
        "loaded; [tables](bench-tables.md) has cold processes. MiB are the most memory that the process took. Runs are",
        "not compared in turns, so small differences mean nothing. Ratios are theirs / ours: above 1, ours is faster.",
        "A table that was just copied, or that another library wrote to last, has no valid version hint. Opening it",
        "lists the versions, and so does the first commit: 20 ms each for 50,000 versions, most of it in the system.",
        "",
        f"- **Slower than the reference**: {', '.join(slower) or 'nothing'}.",
        f"- Geometric mean of the {len(ratios)} ratios: {geometric_mean(ratios.values()):.2f}.",
    ]
    for name in (name for name in SIZES if name in sizes):
        lines += [*_heading(name, sizes[name].setting)]
        lines += [_row(operation, pair) for operation, pair in sizes[name].operations.items()]
    return "\n".join([*lines, ""])


def recorded(text: str) -> dict[str, Measured]:
    """Return what an earlier page states; ratios of numbers that it rounds differ a little."""
    sizes: dict[str, Measured] = {}
    for section in text.split("\n## ")[1:]:
        name, _, described, _, _, _, *rows = section.splitlines()
        sizes[name] = Measured(described, dict(map(_parsed, filter(None, rows))))
    return sizes


def _parsed(row: str) -> tuple[str, Pair]:
    operation, *cells = (cell.strip() for cell in row.strip("| ").split(" | "))
    taken = [_taken(*cells[at : at + 2]) for at in (0, 2)]
    return operation, dict(zip(CONTENDERS, taken, strict=True))


def _taken(seconds: str, mebibytes: str) -> Taken:
    if seconds.startswith(_FAILED):
        return Taken(0, 0, seconds.removeprefix(_FAILED))
    return Taken(float(seconds), float(mebibytes.replace(",", "")))


def _line(described: Mapping[str, str]) -> str:
    return " · ".join(f"{name}: {value}" for name, value in described.items() if name != "scale")


def _heading(name: str, described: str = "") -> list[str]:
    return [
        "",
        f"## {name}",
        "",
        *([described, ""] if described else []),
        "| | pylance, s | MiB | ours, s | MiB | ratio |",
        "|---|---|---|---|---|---|",
    ]


def _row(operation: str, pair: Pair) -> str:
    theirs, ours = (pair[library] for library in CONTENDERS)
    ratio = "" if theirs.error or ours.error else f"{theirs.seconds / ours.seconds:.2f}"
    return f"| {operation} | {theirs} | {ours} | {ratio} |"


def _measure_size(name: str, scratch: Path) -> Iterator[tuple[str, Pair]]:
    """Yield what each operation took."""
    size, table = SIZES[name], scratch / "table.lance"
    for operation in ("write", *size.reads, *size.changes):
        pair: dict[str, Taken] = {}
        for library in CONTENDERS:
            uri = scratch / f"{library}.lance" if operation not in size.reads else table
            if operation in size.changes:
                _copy_table(table, uri)
            pair[library] = _in_a_process(name, operation, library, str(uri))
            if operation == "write" and library == "lance_ops":
                uri.rename(table)
            elif uri != table:
                shutil.rmtree(uri)
        yield operation, pair


def _copy_table(source: Path, target: Path) -> None:
    """Copy a table, and commit to the copy: the version hint holds for its own folder alone.

    So both libraries find a table whose last commit is one of this library, as its users do.
    """
    shutil.copytree(source, target)
    ours = __import__("lance_ops")  # here, because a measured process imports one library
    ours.dataset(str(target)).update_config({"copied": "true"})
    os.sync()  # or a library that syncs would write the copy within its time


def _in_a_process(name: str, operation: str, library: str, uri: str) -> Taken:
    command = [sys.executable, "-m", "tests.bench.sizes", "--one", name, operation, library, uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Taken(0, 0, said[-1][:60])
    return Taken(*json.loads(done.stdout.splitlines()[-1]))


def _measured(name: str, operation: str, library: str, uri: str) -> tuple[float, float]:
    lib = __import__(library)
    size = SIZES[name]
    call = size.write if operation == "write" else {**size.reads, **size.changes}[operation]
    _get_ready(lib)
    start = time.perf_counter()
    call(lib, uri)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _get_ready(lib: ModuleType) -> None:
    """Write, read and change a small table until the library has loaded what it imports and compiles on use."""
    with tempfile.TemporaryDirectory() as folder:
        uri = folder + "/small.lance"
        lib.write_dataset(_rows(0, 40_000), uri, max_rows_per_file=100)
        for number in range(_FIRST_USES):
            lib.dataset(uri).insert(_rows(number, number + 1))
            lib.dataset(uri).to_table(filter="id = 1 AND s = '1'")
            lib.dataset(uri).take(list(range(0, 40_000, 400)))
    gc.collect()  # or the collection of what the imports left, 75 ms, falls into whichever operation makes many objects


if __name__ == "__main__":
    main()
