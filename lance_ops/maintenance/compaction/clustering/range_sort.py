"""The tasks of a clustering: sample keys, sort rows into runs, and merge one range of all runs into fragments.

    Sample(piece) -> SampledKeys            values of the cluster columns of some rows
    Partition(piece) -> Run                 a file with the piece's rows in order, and where each range begins in it
    Merge(range) -> MergedRange             the range's rows of all runs, in order, as new fragments

Runs are data files that no version names. The driver deletes them; after a crash clean-up does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_ops.core import predicate
from lance_ops.core.arrow import array_of_numbers, numbers_of, rows_at
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader
from lance_ops.maintenance.compaction.clustering.cluster_keys import Curve, keyed, order_of, ranks
from lance_ops.maintenance.compaction.clustering.cluster_plan import Piece
from lance_ops.maintenance.compaction.rewritten_lineage import with_lineage
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_ID,
    VERSION_COLUMNS,
    ScanRequest,
    empty_answer,
    in_task,
    row_field,
    scan_rows,
)
from lance_ops.snapshot import FREE_SORTED_BYTES, Snapshot, SnapshotReference, limit_held_bytes
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, RowVersions
from lance_ops.writing import FragmentLimits, FragmentWriter

__all__ = [
    "Merge",
    "MergeTask",
    "MergedRange",
    "Partition",
    "Run",
    "RunSlice",
    "Sample",
    "SampledKeys",
    "read_addresses",
]

_ADDRESSES = Schema.from_arrow(pa.schema([row_field(ROW_ADDRESS)]))


@dataclass(frozen=True)
class SampledKeys:
    """Values of some rows of a group: an array for each cluster column, and the rows' addresses."""

    group: int
    values: tuple[pa.Array, ...]
    addresses: pa.Array


@dataclass(frozen=True)
class Sample:
    """Reads the cluster columns of a piece and returns some rows of them, about one of `one_of` by group."""

    snapshot: SnapshotReference
    columns: tuple[predicate.Column, ...]
    one_of: tuple[float, ...]

    def __call__(self, piece: Piece) -> SampledKeys:
        """Choose rows at random, the same ones whenever the task is repeated."""
        snapshot = self.snapshot.open()
        schema = snapshot.schema.project(dict.fromkeys(column.path[0] for column in self.columns))
        first_id, first_row, _ = piece.row_ranges[0]
        random = np.random.default_rng([first_id, first_row])
        parts = []
        for table in _tables(snapshot, piece, schema, []):
            chosen = np.flatnonzero(random.random(table.num_rows) * self.one_of[piece.group] < 1)
            parts.append(rows_at(_one_batch(table), chosen))
        batch = pa.concat_batches(parts)
        values = tuple(column.evaluate(batch) for column in self.columns)
        return SampledKeys(piece.group, values, batch.column(ROW_ADDRESS))


@dataclass(frozen=True)
class Run:
    """A piece's rows in order: range `r` begins at row `begins[r]` of the file and ends where the next one begins."""

    group: int
    fragment: Fragment | None
    begins: Int64Array


@dataclass(frozen=True)
class Partition:
    """Sorts the rows of a piece; `curves` and `cuts` are those of each group."""

    snapshot: SnapshotReference
    columns: tuple[predicate.Column, ...]
    file_version: FileVersion
    curves: tuple[Curve, ...]
    cuts: tuple[pa.RecordBatch, ...]

    def __call__(self, piece: Piece) -> Run:
        """Write one file; a piece without rows needs none."""
        snapshot = self.snapshot.open()
        cuts = self.cuts[piece.group]
        batch = _one_batch(pa.concat_tables(_tables(snapshot, piece, snapshot.schema, _lineage_columns(snapshot))))
        if not batch.num_rows:
            return Run(piece.group, None, np.zeros(cuts.num_rows + 2, np.int64))
        keys = _keys(batch, self.columns, self.curves[piece.group])
        order = order_of(keys).indices(keys)
        numbers = ranks(cuts, keys)[numbers_of(order).astype(np.int64)]
        begins = np.searchsorted(numbers, np.arange(cuts.num_rows + 2))
        limits = FragmentLimits(max_rows_per_file=batch.num_rows)
        with FragmentWriter(snapshot.store, _run_schema(snapshot), self.file_version, limits, durable=False) as writer:
            writer.write(rows_at(batch, order))
            (fragment,) = writer.finish()
        return Run(piece.group, fragment, begins.astype(np.int64))


@dataclass(frozen=True)
class RunSlice:
    """Rows of a run that belong to one range."""

    path: str
    file_size_bytes: int
    first: int
    stop: int


@dataclass(frozen=True)
class MergeTask:
    """One range of a group's keys, and where its rows are in the runs."""

    group: int
    slices: tuple[RunSlice, ...]
    size_bytes: int


@dataclass(frozen=True)
class MergedRange:
    """The new fragments of a range, and a file with the old addresses of their rows if somebody needs them."""

    group: int
    new_fragments: tuple[Fragment, ...]
    addresses: Fragment | None

    def files(self) -> tuple[Fragment, ...]:
        """Return everything that the task wrote."""
        return self.new_fragments if self.addresses is None else (*self.new_fragments, self.addresses)


@dataclass(frozen=True)
class Merge:
    """Writes the rows of a range in order; `curves` are those of each group."""

    snapshot: SnapshotReference
    columns: tuple[predicate.Column, ...]
    file_version: FileVersion
    max_bytes_per_file: int
    with_addresses: bool
    curves: tuple[Curve, ...]

    def __call__(self, task: MergeTask) -> MergedRange:
        """Read the range from every run, sort its rows, and write them with the row ids and versions that they had."""
        snapshot = self.snapshot.open()
        schema = _run_schema(snapshot)
        parts = [
            FileReader(snapshot.store, part.path, part.file_size_bytes).read(schema, part.first, part.stop)
            for part in task.slices
        ]
        batch = _one_batch(pa.concat_tables(parts))
        keys = _keys(batch, self.columns, self.curves[task.group])
        batch = rows_at(batch, order_of(keys).indices(keys))
        rows = batch.select(snapshot.schema.names)
        limits = FragmentLimits(max(batch.num_rows, 1), self.max_bytes_per_file)
        step = max(1, batch.num_rows * min(self.max_bytes_per_file, rows.nbytes) // max(rows.nbytes, 1))
        with FragmentWriter(snapshot.store, snapshot.schema, self.file_version, limits, durable=False) as writer:
            for first in range(0, batch.num_rows, step):
                writer.write(rows.slice(first, step))
            new = tuple(writer.finish())
            if snapshot.manifest.uses_stable_row_ids:
                new = _with_lineage(snapshot, batch, new)
            addresses = self._write_addresses(snapshot.store, batch) if self.with_addresses else None
            return MergedRange(task.group, new, addresses)

    def _write_addresses(self, store: Store, batch: pa.RecordBatch) -> Fragment:
        limits = FragmentLimits(max(batch.num_rows, 1))
        with FragmentWriter(store, _ADDRESSES, self.file_version, limits, durable=False) as writer:
            writer.write(batch.select([ROW_ADDRESS]))
            (fragment,) = writer.finish()
            return fragment


def read_addresses(store: Store, fragment: Fragment) -> pa.Array:
    """Return the old addresses that a `Merge` wrote."""
    (path,) = fragment.data_paths()
    return FileReader(store, path, fragment.files[0].file_size_bytes).read().column(0).combine_chunks()


def _with_lineage(snapshot: Snapshot, batch: pa.RecordBatch, new: Sequence[Fragment]) -> tuple[Fragment, ...]:
    ids, created, updated = (numbers_of(batch.column(name)) for name in (ROW_ID, *VERSION_COLUMNS))
    return with_lineage(snapshot.uri, new, RowIds.of(ids), RowVersions.of(created), RowVersions.of(updated))


def _lineage_columns(snapshot: Snapshot) -> list[str]:
    return [ROW_ID, *VERSION_COLUMNS] if snapshot.manifest.uses_stable_row_ids else []


def _run_schema(snapshot: Snapshot) -> Schema:
    """Return the table's columns and, after them, the row columns that a run carries."""
    names = [ROW_ADDRESS, *_lineage_columns(snapshot)]
    added = Schema.from_arrow(pa.schema(map(row_field, names)), snapshot.schema.max_field_id + 1)
    return Schema((*snapshot.schema.fields, *added.fields))


def _tables(snapshot: Snapshot, piece: Piece, schema: Schema, lineage: Sequence[str]) -> list[pa.Table]:
    """Return a piece's live rows with their addresses; at least one table, which may be empty."""
    request = ScanRequest(
        schema,
        with_row_address=True,
        with_row_id=ROW_ID in lineage,
        version_columns=VERSION_COLUMNS if lineage else (),
        fragment_ids=tuple(fragment_id for fragment_id, _, _ in piece.row_ranges),
        row_ranges=piece.row_ranges,
    )
    fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id, _, _ in piece.row_ranges]
    found = (rows.table for rows in scan_rows(snapshot, in_task(snapshot, request)))
    held = list(limit_held_bytes(snapshot, found, fragments, FREE_SORTED_BYTES))
    return held or [empty_answer(request)]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    chunks = table.unify_dictionaries().combine_chunks().to_batches()
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_batches(chunks) if chunks else pa.RecordBatch.from_pylist([], schema=table.schema)


def _keys(batch: pa.RecordBatch, columns: Sequence[predicate.Column], curve: Curve) -> pa.RecordBatch:
    values = [column.evaluate(batch) for column in columns]
    return keyed(curve.keys(values), array_of_numbers(numbers_of(batch.column(ROW_ADDRESS))))
