"""What is measured: an operation of this library on Spark, and the one that it is compared with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count as count_up
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import count, lit
from pyspark.sql.functions import sum as sum_of

import lance_ops
from lance_ops.maintenance.ingest import IngestBatch, RawFile, ingest
from lance_ops.runners import InThreads, Runner
from lance_ops.spark import OnSpark, map_fragments, table, write
from tests.bench.spark.bounds import DIMENSIONS, TASKS, Memory, do_nothing

__all__ = ["ALL_CASES", "COLD", "FRAGMENTS_TO_COMPACT", "IDLE", "LONG_TABLE", "WARM", "Bench", "Case"]

WARM, IDLE, COLD = "warm", "idle", "cold"

_FILES = 8
FRAGMENTS_TO_COMPACT = 24
LONG_TABLE = 10
"""How many times as many rows the long table has, so that its index and its merge are shared among tasks."""

_ONE_IN_CHANGED = 96
_SEED = 7


@dataclass
class Bench:
    """A session, a folder for everything that is measured, and the number of rows.

    `start` is called with whether Python workers are to be those of PySpark alone.
    """

    start: Callable[[bool], SparkSession]
    root: Path
    num_rows: int
    fresh: Iterator[int] = field(default_factory=count_up, repr=False)

    def __post_init__(self) -> None:
        self.session = self.start(False)

    def restart(self, *, plain_workers: bool = False) -> None:
        """Start another session in the same JVM, which stays warm; daemons and workers end with the old session."""
        self.session.stop()
        self.session = self.start(plain_workers)
        self.session.range(100).count()

    @property
    def parquet(self) -> str:
        return str(self.root / "source")

    @property
    def lance(self) -> str:
        return str(self.root / "source.lance")

    @property
    def to_compact(self) -> str:
        return str(self.root / "fragments.lance")

    @property
    def changes(self) -> str:
        return str(self.root / "changes.lance")

    @property
    def long(self) -> str:
        return str(self.root / "long.lance")

    @property
    def long_changes(self) -> str:
        return str(self.root / "long-changes.lance")

    def new_path(self) -> str:
        """Return a path at which nothing is."""
        return str(self.root / f"made-{next(self.fresh)}")

    def prepare(self) -> None:
        """Write the source as Parquet files and as a table, a table of short fragments with an index, a long table."""
        Path(self.parquet).mkdir(parents=True)
        for number in range(_FILES):
            pq.write_table(self._rows(number), Path(self.parquet, f"{number}.parquet"))
        per_file = -(-self.num_rows // _FILES)
        lance_ops.write_dataset(pq.read_table(self.parquet), self.lance, max_rows_per_file=per_file)
        changed = self._rows(0)
        lance_ops.write_dataset(changed.take(np.arange(0, len(changed), _ONE_IN_CHANGED // _FILES)), self.changes)
        short = -(-self.num_rows // FRAGMENTS_TO_COMPACT)
        made = lance_ops.write_dataset(pq.read_table(self.parquet), self.to_compact, max_rows_per_file=short)
        made.create_scalar_index("id", "BTREE")
        made.delete("id % 50 = 7")
        long = self._long_rows()
        lance_ops.write_dataset(long, self.long, max_rows_per_file=-(-len(long) // _FILES))
        lance_ops.write_dataset(long.take(np.arange(0, len(long), 100)), self.long_changes)

    def _long_rows(self) -> pa.Table:
        size, rng = self.num_rows * LONG_TABLE, np.random.default_rng(_SEED)
        return pa.table({"id": np.arange(size), "value": rng.normal(size=size)})

    def _rows(self, number: int) -> pa.Table:
        size, rng = self.num_rows // _FILES, np.random.default_rng(_SEED + number)
        ids = np.arange(number * size, (number + 1) * size)
        vectors = pa.array(rng.normal(size=size * DIMENSIONS).astype(np.float32))
        return pa.table(
            {
                "id": ids,
                "value": rng.normal(size=size),
                "name": pa.array([f"name {item:07d}" for item in rng.integers(0, 10**7, size).tolist()]),
                "vector": pa.ListArray.from_arrays(
                    np.arange(0, size * DIMENSIONS + 1, DIMENSIONS).astype(np.int32), vectors
                ),
            }
        )


@dataclass(frozen=True)
class Case:
    """`ours` and `theirs` are measured in turns. Both give the same answer, which the first round compares.

    `most` says how long ours may take for each workers' state: so many times as long as `against`. `prepare` is not
    measured; its result goes to the operation. `bound` is what Spark itself takes for the like in Python; see `bounds`.
    """

    name: str
    against: str
    most: dict[str, float]
    ours: Callable[[Bench, Any], object]
    theirs: Callable[[Bench, Any], object]
    prepare: Callable[[Bench], object] = Bench.new_path
    bound: Callable[[Bench], object] | None = None


def _ingest(bench: Bench, uri: str) -> int:
    paths = sorted(Path(bench.parquet).glob("*.parquet"))
    batches = [IngestBatch(path.name, (RawFile(str(path), path.stat().st_size, path.name),)) for path in paths]
    return ingest(uri, batches, runner=OnSpark(bench.session)).num_rows


def _copy_parquet(bench: Bench, path: str) -> int:
    bench.session.read.parquet(bench.parquet).write.parquet(path)
    return _rows_of_parquet(path)


def _write_frame(bench: Bench, uri: str) -> int:
    bench.session.read.parquet(bench.parquet).write.format("lance").mode("append").save(uri)
    return lance_ops.dataset(uri).count_rows()


def _write_by_call(bench: Bench, uri: str) -> int:
    return write(bench.session.read.parquet(bench.parquet), uri).count_rows()


def _rows_of_parquet(path: str) -> int:
    return sum(pq.read_metadata(file).num_rows for file in Path(path).glob("*.parquet"))


def _consume(frame: DataFrame) -> int:
    """Read every value of a frame, and return the number of rows."""
    seen = Observation()
    frame.observe(seen, count(lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def _sum(frame: DataFrame) -> float:
    return round(float(frame.agg(sum_of("value")).first()[0]), 3)  # type: ignore[index]  # an aggregate has a row


def _sum_of_batches(batches: pa.RecordBatchReader) -> float:
    return sum(pc.sum(batch["value"]).as_py() or 0.0 for batch in batches)


def _sum_in_tasks(bench: Bench, _: object) -> float:
    opened = lance_ops.dataset(bench.lance)
    sums = map_fragments(opened, _sum_of_batches, columns=["value"], runner=OnSpark(bench.session))
    return round(sum(sums.values()), 3)


def _fragments(bench: Bench) -> str:
    return shutil.copytree(bench.to_compact, bench.new_path())


def _compact(bench: Bench, uri: str) -> int:
    target = bench.num_rows // _FILES
    lance_ops.dataset(uri).optimize.compact_files(target_rows_per_fragment=target, runner=OnSpark(bench.session))
    return lance_ops.dataset(uri).count_rows()


def _compact_by_reference(bench: Bench, uri: str) -> int:
    import lance  # the reference, of the tests only

    dataset = lance.dataset(uri)
    dataset.optimize.compact_files(target_rows_per_fragment=bench.num_rows // _FILES)
    rows: int = dataset.count_rows()
    return rows


def _copy(bench: Bench) -> str:
    return shutil.copytree(bench.lance, bench.new_path())


def _copy_long(bench: Bench) -> str:
    return shutil.copytree(bench.long, bench.new_path())


def _index(uri: str, runner: Runner) -> int:
    lance_ops.dataset(uri).create_scalar_index("value", "BTREE", runner=runner)
    return len(lance_ops.dataset(uri).describe_indices())


def _merge(uri: str, changes: str, runner: Runner) -> object:
    merge = lance_ops.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(lance_ops.dataset(changes), runner=runner)


def _read_memory(bench: Bench) -> int:
    bench.session.dataSource.register(Memory)
    return _consume(bench.session.read.format(Memory.name()).option("rows", bench.num_rows).load())


def _write_nowhere(bench: Bench) -> None:
    bench.session.dataSource.register(Memory)
    bench.session.read.parquet(bench.parquet).write.format(Memory.name()).mode("append").save()


def _run_empty_tasks(bench: Bench) -> int:
    numbers: list[int] = bench.session.sparkContext.parallelize(range(TASKS), TASKS).mapPartitions(do_nothing).collect()
    return len(numbers)


def _against_threads(
    name: str, run: Callable[[Bench, str, Runner], object], prepare: Callable[[Bench], str], num_jobs: int = 0
) -> Case:
    """Return the case that compares a verb on Spark, of so many jobs, with the same verb on threads of the driver."""
    return Case(
        name,
        "ours on threads",
        {WARM: 1.0},
        lambda bench, uri: run(bench, uri, OnSpark(bench.session)),
        lambda bench, uri: run(bench, uri, InThreads()),
        prepare,
        bound=(lambda bench: [_run_empty_tasks(bench) for _ in range(num_jobs)]) if num_jobs else None,
    )


_PARQUET = "Spark's Parquet"

ALL_CASES = (
    Case("ingest of Parquet files", "Spark's copy of them", {WARM: 0.5, IDLE: 1.0, COLD: 1.0}, _ingest, _copy_parquet),
    Case("df.write", _PARQUET, {WARM: 1.1, COLD: 1.1}, _write_frame, _copy_parquet, bound=_write_nowhere),
    Case("write()", _PARQUET, {WARM: 1.1, COLD: 1.1}, _write_by_call, _copy_parquet),
    Case(
        "read of all columns",
        _PARQUET,
        {WARM: 1.5, COLD: 1.5},
        lambda bench, _: _consume(bench.session.read.format("lance").load(bench.lance)),
        lambda bench, _: _consume(bench.session.read.parquet(bench.parquet)),
        bound=_read_memory,
    ),
    Case(
        "all columns by table()",
        _PARQUET,
        {WARM: 1.5, COLD: 1.5},
        lambda bench, _: _consume(table(bench.session, bench.lance).load()),
        lambda bench, _: _consume(bench.session.read.parquet(bench.parquet)),
    ),
    Case(
        "one column by table()",
        _PARQUET,
        {WARM: 1.0, COLD: 1.0},
        lambda bench, _: _sum(table(bench.session, bench.lance).select("value").load()),
        lambda bench, _: _sum(bench.session.read.parquet(bench.parquet)),
    ),
    Case(
        "one column by map_fragments",
        _PARQUET,
        {WARM: 1.0, COLD: 1.0},
        _sum_in_tasks,
        lambda bench, _: _sum(bench.session.read.parquet(bench.parquet)),
        bound=_run_empty_tasks,
    ),
    Case("compaction with remap", "pylance", {WARM: 1 / 1.5}, _compact, _compact_by_reference, _fragments),
    _against_threads("BTREE", lambda bench, uri, runner: _index(uri, runner), _copy),
    _against_threads("merge of 1% of the rows", lambda bench, uri, runner: _merge(uri, bench.changes, runner), _copy),
    _against_threads("BTREE of the long table", lambda bench, uri, runner: _index(uri, runner), _copy_long, num_jobs=2),
    _against_threads(
        "merge of 1% of the long table",
        lambda bench, uri, runner: _merge(uri, bench.long_changes, runner),
        _copy_long,
        num_jobs=1,
    ),
)
