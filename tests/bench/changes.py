"""`python -m tests.bench.changes [CHANGE ...]`: updates, merges and added columns, ours against pylance.

Both change copies of one table, in turns, in one process on one core. Our commits are synced to the disk, which the
wall time has and the CPU time has not.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.results import OWN_FILES, Cell, Sample

__all__ = ["ALL_CHANGES", "Change", "measure"]

NUM_ROWS = 1_000_000
VERSION = "2.2"
_CONTENDERS = {"pylance": "lance", "ours": "lance_ops"}


@dataclass(frozen=True)
class Change:
    """Something done to a table; `source` makes what it is done with from the number of rows."""

    name: str
    run: Callable[[Any, pa.Table], object]
    source: Callable[[int], pa.Table] = lambda num_rows: rows(0)
    indexed: bool = False


def rows(count: int, first: int = 0) -> pa.Table:
    """Return rows with keys in no order, beside a number and a text."""
    rng = np.random.default_rng(count)
    keys = rng.permutation(count) + first
    return pa.table({"id": keys, "v": rng.normal(size=count), "s": pa.array(keys * 7919).cast(pa.string())})


def _some(share: float, new: float = 0.1) -> Callable[[int], pa.Table]:
    """Return as many of the table's keys as `share` says, and `new` times as many that it does not have."""

    def make(num_rows: int) -> pa.Table:
        count = max(1, int(num_rows * share))
        there = np.random.default_rng(1).choice(num_rows, count, replace=False)
        keys = np.concatenate([there, np.arange(num_rows, num_rows + int(count * new))])
        return pa.table({"id": keys, "v": np.zeros(len(keys)), "s": pa.array(keys).cast(pa.string())})

    return make


def _upsert(dataset: Any, source: pa.Table) -> object:
    return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)


def _update_some_columns(dataset: Any, source: pa.Table) -> object:
    return dataset.merge_insert("id").when_matched_update_all().execute(source.select(["id", "v"]))


ALL_CHANGES = (
    Change("merge_insert 1%", _upsert, _some(0.01)),
    Change("merge_insert 50%", _upsert, _some(0.5)),
    Change("merge_insert 0.1% by index", _upsert, _some(0.001), indexed=True),
    Change("merge_insert part of the columns", _update_some_columns, _some(0.01)),
    Change("update 1%", lambda dataset, _: dataset.update({"v": "v + 1"}, "id % 100 = 7")),
    Change("update all", lambda dataset, _: dataset.update({"v": "v + 1"})),
    Change("add_columns", lambda dataset, _: dataset.add_columns({"w": "v * 2 + id"})),
)


def measure(changes: tuple[Change, ...], folder: Path, *, scale: float = 1.0, rounds: int = 7) -> Iterator[Cell]:
    """Yield a cell for each change; the first round warms up and does not count."""
    modules = {name: importlib.import_module(module) for name, module in _CONTENDERS.items()}
    num_rows = max(100, int(NUM_ROWS * scale))
    for change in changes:
        template, copy, source = folder / "template", folder / "copy", change.source(num_rows)
        made = modules["pylance"].write_dataset(
            rows(num_rows), str(template), data_storage_version=VERSION, max_rows_per_file=-(-num_rows // 4)
        )
        if change.indexed:
            made.create_scalar_index("id", "BTREE")
        samples: dict[str, list[Sample]] = {name: [] for name in modules}
        for _ in range(rounds + 1):
            for name, module in modules.items():
                shutil.copytree(template, copy)
                dataset = module.dataset(str(copy))
                gc.collect()
                cpu, start = time.process_time(), time.perf_counter()
                change.run(dataset, source)
                seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
                samples[name].append(Sample(seconds, cpu_seconds, 0))
                shutil.rmtree(copy)
        shutil.rmtree(template)
        yield Cell(change.name, VERSION, "change", {name: tuple(found[1:]) for name, found in samples.items()})


def main() -> None:
    """Measure and print a line for each change."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.changes", description=__doc__)
    parser.add_argument("changes", nargs="*", help=f"of {', '.join(change.name for change in ALL_CHANGES)}")
    parser.add_argument("--scale", type=float, default=1.0, help=f"times {NUM_ROWS} rows")
    arguments = parser.parse_args()
    chosen = tuple(change for change in ALL_CHANGES if not arguments.changes or change.name in arguments.changes)
    if not chosen:
        sys.exit(f"there are {', '.join(change.name for change in ALL_CHANGES)}")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{'':<34}{'CPU ms: ours':>14}{'pylance':>9}{'ratio':>7}{'wall ms: ours':>15}{'pylance':>9}{'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="lance-ops-bench-") as scratch:
        for cell in measure(chosen, Path(scratch), scale=arguments.scale):
            print(f"{cell.case:<34}{_shown(cell, 'cpu_seconds'):>30}{_shown(cell, 'seconds'):>31}", flush=True)


def _shown(cell: Cell, measure: str) -> str:
    ours, theirs = (1e3 * (cell.typical(name, measure) or 0) for name in ("ours", "pylance"))
    return f"{ours:.0f}{theirs:>9.0f}{cell.ratio(OWN_FILES, measure) or 0:>7.2f}"


if __name__ == "__main__":
    main()
