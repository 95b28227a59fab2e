"""The verbs that faults strike: each changes or reads a small table by tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

import lance_ops
from lance_ops.changing import Keep, delete_duplicates
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupTasks, cleanup_old_versions
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index, optimize_indices, remap_tasks
from lance_ops.maintenance.ingest import IngestBatch, IngestMode, IngestOptions, RawFile, ingest
from lance_ops.spark import OnSpark, merge_history, sql, write
from lance_ops.writing import deletion_files

__all__ = ["CLONE", "FRAGMENTS", "ROWS", "TABLE", "VERBS", "Verb"]

TABLE, CLONE = "t.lance", "clone.lance"
FRAGMENTS, ROWS = 8, 40
NUMBERS = range(ROWS)
_SMALL = TaskSizes(least_bytes=1, task_bytes=200)

Columns = Mapping[str, Sequence[Any]]


def _nothing(dataset: lance_ops.LanceDataset) -> None:
    """The table is ready as it is."""


@dataclass(frozen=True)
class Verb:
    """A verb on a table of `x` and `y`, 0 to 39; the fault strikes the first task of the job that begins with `job`.

    The table has the columns `before` in `FRAGMENTS` fragments; then `prepare` changes it. In the end it has the
    columns `after` and so many fragments and indices, and is at `version`. With `looks_at` it is another dataset beside
    it that the verb makes. With `reserves_first` the verb has committed a version that reserves ids when the fault
    strikes. A verb `in_parts` may have done a part of its work when it fails: its rows stay.
    """

    job: str
    run: Callable[[lance_ops.LanceDataset, OnSpark], object]
    after: Columns
    num_fragments: int = FRAGMENTS
    num_indices: int = 0
    version: int = 2
    before: Columns = field(default_factory=lambda: {"x": NUMBERS, "y": NUMBERS})
    prepare: Callable[[lance_ops.LanceDataset], object] = _nothing
    looks_at: str = TABLE
    reserves_first: bool = False
    in_parts: bool = False


def _merge(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    changes = runner.session.range(38, 44).selectExpr("id AS x", "-id AS y")
    dataset.merge_insert("x").when_matched_update_all().when_not_matched_insert_all().execute(changes, runner=runner)


def _replace_values(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    rows = pa.array([1, 2, 7 << 32 | 4], pa.uint64())
    dataset.update_columns(pa.table({"_rowaddr": rows, "y": pa.array([-1, -2, -39], pa.int64())}), runner=runner)


def _write(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    rows = runner.session.range(ROWS, ROWS + 8, 1, 4).selectExpr("id AS x", "id AS y")
    write(rows, dataset.uri, on_progress=runner.on_progress)


def _statement(text: str, dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    """Execute a statement on the table `t` whose rows Spark chooses."""
    sql(runner.session, text.replace(" t ", f" lance.`{dataset.uri}` AS t "), runner=runner).collect()


def _index(dataset: lance_ops.LanceDataset) -> None:
    create_scalar_index(dataset.snapshot, "x", "BTREE")


def _index_and_append(dataset: lance_ops.LanceDataset) -> None:
    _index(dataset)
    more = pa.array(range(ROWS, ROWS + 5), pa.int64())
    lance_ops.write_dataset(pa.table({"x": more, "y": more}), dataset.uri, mode="append")


def _extend(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    optimize_indices(dataset.snapshot, runner=runner, sizes=_SMALL)


def _compact_indexed(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    """Compact a table whose index tasks remap, however small it is."""
    small = partial(TaskSizes, least_remap_bytes=0, task_bytes=200)
    with patch.object(remap_tasks, "TaskSizes", small):
        dataset.optimize.compact_files(target_rows_per_fragment=10, runner=runner)


def _update_twice(dataset: lance_ops.LanceDataset) -> None:
    for _ in range(2):
        dataset.update({"y": "y + 0"})


def _clean_up(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    options = CleanupOptions(retain_versions=1, delete_unverified=True)
    cleanup_old_versions(dataset.snapshot, options, CleanupTasks(runner, 1, 1, 1))


def _verify(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    assert dataset.verify(runner=runner).ok


def _delete_duplicates(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    delete_duplicates(dataset.snapshot, ["y"], Keep.FIRST, runner)


def _deep_clone(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    dataset.deep_clone(str(Path(dataset.uri).with_name(CLONE)), dataset.version, runner=runner)


def _delete_by_deletion_files(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    """Delete rows of a table whose deletion files tasks write, however few they are."""
    with patch.multiple(deletion_files, _FEWEST_FOR_TASKS=1, _FRAGMENTS_PER_TASK=1):
        dataset.delete("y % 2 = 1", runner=runner)


def _erase(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    dataset.erase("x = 1", reason="a fault strikes", runner=runner)


def _ingest(mode: IngestMode, dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    """Ingest four raw files, a task for each. Some rows have keys of the table's, where rows are merged by key."""
    keys, begin = ((), ROWS) if mode is IngestMode.APPEND else (("x",), ROWS - 2)
    batches = []
    for first in range(begin, begin + 8, 2):
        path = Path(dataset.uri).with_name(f"{first}.parquet")
        pq.write_table(pa.table({"x": [first, first + 1], "y": [-first, -first - 1]}), path)
        batches.append(IngestBatch(path.name, (RawFile(str(path), path.stat().st_size, path.name),)))
    options = IngestOptions(mode=mode, keys=keys, max_files_per_task=1)
    ingest(dataset.uri, batches, options=options, runner=runner)


def _history(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    changes = runner.session.range(38, 41).selectExpr("id AS x", "-id AS y", "9L AS valid_from")
    merge_history(dataset, changes, "x", runner=runner)


_HISTORY: Columns = {
    "x": NUMBERS,
    "y": NUMBERS,
    "valid_from": [1] * ROWS,
    "valid_to": [None] * ROWS,
    "current": [True] * ROWS,
}

_ERASED = {"x": [0, *range(2, ROWS)], "y": [0, *range(2, ROWS)]}
_MERGED = {"x": range(44), "y": [*range(38), *range(-38, -44, -1)]}

VERBS = {
    "merge": Verb(
        "merge (rows)",
        _merge,
        _MERGED,
        num_fragments=FRAGMENTS + 1,
    ),
    "compaction": Verb(
        "compact",
        lambda dataset, runner: dataset.optimize.compact_files(target_rows_per_fragment=10, runner=runner),
        {"x": NUMBERS, "y": NUMBERS},
        num_fragments=FRAGMENTS // 2,
        version=3,  # ids of fragments are reserved first
    ),
    "index": Verb(
        "index",
        lambda dataset, runner: create_scalar_index(dataset.snapshot, "x", "BTREE", runner=runner, sizes=_SMALL),
        {"x": NUMBERS, "y": NUMBERS},
        num_indices=1,
    ),
    "column": Verb(
        "add columns",
        lambda dataset, runner: dataset.add_columns({"z": "x * 2"}, runner=runner),
        {"x": NUMBERS, "y": NUMBERS, "z": range(0, 2 * ROWS, 2)},
    ),
    "deletion": Verb(
        "delete",
        lambda dataset, runner: dataset.delete("y % 2 = 1", runner=runner),
        {"x": range(0, ROWS, 2), "y": range(0, ROWS, 2)},
    ),
    "deletion by keys": Verb(
        "merge into",
        lambda dataset, runner: dataset.delete_by_keys(pa.table({"x": [*range(5, ROWS)]}), "x", runner=runner),
        {"x": range(5), "y": range(5)},
        num_fragments=1,
    ),
    "update": Verb(
        "update",
        lambda dataset, runner: dataset.update({"y": "-y"}, where="x >= 38", runner=runner),
        {"x": NUMBERS, "y": [*range(38), -38, -39]},
        num_fragments=FRAGMENTS + 1,
    ),
    "values by row": Verb("replace values", _replace_values, {"x": NUMBERS, "y": [0, -1, -2, *range(3, 39), -39]}),
    "zone map": Verb(
        "index",
        lambda dataset, runner: create_scalar_index(dataset.snapshot, "x", "ZONEMAP", runner=runner, sizes=_SMALL),
        {"x": NUMBERS, "y": NUMBERS},
        num_indices=1,
    ),
    "sort": Verb(
        "cluster, sort",
        lambda dataset, runner: dataset.optimize.compact_files(cluster_by=["y"], runner=runner),
        {"x": NUMBERS, "y": NUMBERS},
        num_fragments=1,
        version=3,
    ),
    "migration": Verb(
        "migrate",
        lambda dataset, runner: dataset.optimize.migrate_files("2.1", runner=runner),
        {"x": NUMBERS, "y": NUMBERS},
        version=3,
    ),
    "index extension": Verb(
        "extend index of",
        _extend,
        {"x": range(ROWS + 5), "y": range(ROWS + 5)},
        num_fragments=FRAGMENTS + 1,
        num_indices=1,
        version=4,
        prepare=_index_and_append,
    ),
    "index remap": Verb(
        "remap index of",
        _compact_indexed,
        {"x": NUMBERS, "y": NUMBERS},
        num_fragments=FRAGMENTS // 2,
        num_indices=1,
        version=4,
        prepare=_index,
        reserves_first=True,
    ),
    "deep clone": Verb("clone", _deep_clone, {"x": NUMBERS, "y": NUMBERS}, version=1, looks_at=CLONE),
    "clean-up": Verb(
        "delete files of",
        _clean_up,
        {"x": NUMBERS, "y": NUMBERS},
        num_fragments=1,
        version=3,
        prepare=_update_twice,
        in_parts=True,
    ),
    "verification": Verb("verify", _verify, {"x": NUMBERS, "y": NUMBERS}, version=1),
    "duplicates": Verb(
        "compare keys of",
        _delete_duplicates,
        {"x": range(0, ROWS, 2), "y": range(ROWS // 2)},
        before={"x": NUMBERS, "y": [number // 2 for number in NUMBERS]},
    ),
    "write of a frame": Verb(
        "append to", _write, {"x": range(ROWS + 8), "y": range(ROWS + 8)}, num_fragments=FRAGMENTS + 4
    ),
    "stage of a merge": Verb(
        "append to",
        _merge,
        _MERGED,
        num_fragments=FRAGMENTS + 1,
    ),
    "UPDATE": Verb(
        "update",
        partial(_statement, "UPDATE t SET y = -abs(y) WHERE abs(x) >= 38"),
        {"x": NUMBERS, "y": [*range(38), -38, -39]},
        num_fragments=FRAGMENTS + 2,  # Spark gives each of the two rows to a task of its own
    ),
    "DELETE": Verb(
        "delete",
        partial(_statement, "DELETE FROM t WHERE abs(y) % 2 = 1"),
        {"x": range(0, ROWS, 2), "y": range(0, ROWS, 2)},
    ),
    "MERGE": Verb(
        "merge into",
        partial(
            _statement,
            "MERGE INTO t USING (SELECT id FROM range(38, 42)) AS s ON t.x = s.id "
            "WHEN MATCHED THEN UPDATE SET y = t.y - 100 WHEN NOT MATCHED THEN INSERT (x, y) VALUES (s.id, -s.id)",
        ),
        {"x": range(42), "y": [*range(38), -62, -61, -40, -41]},
        num_fragments=FRAGMENTS + 1,
    ),
    "deletion files": Verb(
        "write deletion files of",
        _delete_by_deletion_files,
        {"x": range(0, ROWS, 2), "y": range(0, ROWS, 2)},
    ),
    "column with a checkpoint": Verb(
        "add columns",
        lambda dataset, runner: dataset.add_columns({"z": "x * 2"}, runner=runner, checkpoint="doubles"),
        {"x": NUMBERS, "y": NUMBERS, "z": range(0, 2 * ROWS, 2)},
        in_parts=True,  # finished files are kept for the next call
    ),
    "search for an erasure": Verb("search", _erase, _ERASED, version=4),
    "erasure": Verb(
        "erase from",
        _erase,
        _ERASED,
        version=4,
        prepare=lambda dataset: dataset.delete("x = 1"),
    ),
    "ingestion": Verb(
        "ingest into",
        partial(_ingest, IngestMode.APPEND),
        {"x": range(ROWS + 8), "y": [*NUMBERS, *range(-ROWS, -ROWS - 8, -1)]},
        num_fragments=FRAGMENTS + 4,
    ),
    "ingestion by key": Verb(
        "ingest into",
        partial(_ingest, IngestMode.UPSERT),
        {"x": range(46), "y": [*range(38), *range(-38, -46, -1)]},
        num_fragments=FRAGMENTS + 1,
    ),
    "history": Verb(
        "merge (rows)",
        _history,
        {
            "x": [*range(38), 38, 38, 39, 39, 40],
            "y": [*range(38), 38, -38, 39, -39, -40],
            "valid_from": [*[1] * 38, 1, 9, 1, 9, 9],
            "valid_to": [*[None] * 38, 9, None, 9, None, None],
            "current": [*[True] * 38, False, True, False, True, True],
        },
        before=_HISTORY,
        num_fragments=FRAGMENTS + 1,
    ),
}
