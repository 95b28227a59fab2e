"""Give rows of a table new values, which a staged dataset holds beside the address or the id of each row, by tasks.

    1. locate   for each staged row, a pair of addresses: that of the table's row and its own; pairs go to buckets
    2. order    each bucket's pairs by the table's row; see `row_buckets`
    3. write    a file for each fragment, with values that are taken from the staged rows by address

No column file is written before every pair was checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.changing import columns as column_changes
from lance_ops.changing.columns import ColumnSource, ReplacedValues
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.changing.merge_insert.by_tasks import Segment, SourceRows
from lance_ops.changing.row_buckets import OrderedPairs, RowBuckets
from lance_ops.changing.row_lookup import locate_rows
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import numbers_of, rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScannedRows, scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import Update, UpdateMode
from lance_ops.writing import TaskShare, commit_operation, conform_present_columns, share_rows

__all__ = ["ROW_KEY", "RowValues", "add_row_values", "replace_row_values"]

ROW_KEY = "__row"
"""The column of the staged rows that names the table's row: an unsigned number of 64 bits."""

_Properties: TypeAlias = Mapping[str, str] | None


@dataclass(frozen=True)
class RowValues:
    """Staged rows with values for rows of a table, which `ROW_KEY` names by address, or with `by_id` by row id."""

    staged: SourceRows
    by_id: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that get values."""
        return tuple(name for name in self.staged.schema.names if name != ROW_KEY)

    @property
    def key_name(self) -> str:
        """What the caller's data calls the key."""
        return ROW_ID if self.by_id else ROW_ADDRESS


def add_row_values(
    snapshot: Snapshot,
    values: RowValues,
    runner: Runner,
    properties: _Properties = None,
    checkpoint: str | None = None,
) -> Snapshot:
    """Add the staged columns in the types that they are staged in; a row without a staged row gets nulls.

    Raises `InvalidInput` for a staged row without a key, for two that name one row, and for one that names a row which
    is deleted or was never there; and as `columns.add_columns` does.
    """
    stored = values.staged.schema.project(values.names).to_arrow_storage()
    added = pa.schema([each.with_nullable(True) for each in stored])
    with _Sharing.of(snapshot, values, runner) as shared:
        source = _SharedValues(values, shared.target, shared.segments)
        return column_changes.add_columns(snapshot, added, source, runner, properties, checkpoint=checkpoint)


def replace_row_values(
    snapshot: Snapshot,
    values: RowValues,
    runner: Runner,
    properties: _Properties = None,
    checkpoint: str | None = None,
) -> tuple[Snapshot, int]:
    """Replace values of existing columns; return the snapshot and the number of rows with new values.

    A row without a staged row keeps its values. Without any staged row nothing is committed. Raises as `add_row_values`
    does, and `SchemaMismatch` naming a column that the table does not have or that has another type.
    """
    new_values = conform_present_columns(
        values.staged.no_rows().drop_columns([ROW_KEY]), snapshot.schema.to_arrow_storage()
    )
    if not new_values.num_columns:
        raise InvalidInput(f"the data has no column beside {values.key_name!r}")
    with _Sharing.of(snapshot, values, runner) as shared:
        if not shared.num_rows:
            return snapshot, 0
        no_keys = SourceKeys([pa.array([], pa.uint64())], [ROW_ADDRESS])
        replaced = ReplacedValues(ROW_ADDRESS, no_keys, new_values)
        columns = Schema(tuple(node for node in snapshot.schema.fields if node.name in new_values.schema.names))
        source = _SharedValues(values, shared.target, shared.segments, tuple(columns.names))
        kept = None if checkpoint is None else column_changes.files_to_keep(snapshot, checkpoint, columns, source)
        tasks = column_changes.plan_backfill(snapshot, columns, source, kept=kept, fragment_ids=shared.segments)
        job = Job.on("replace values in", snapshot.uri, snapshot.version)
        files = column_changes.run_backfill(snapshot, tasks, runner, job)
    fragments, fields = column_changes.fragments_with_replaced_values(snapshot, replaced, files)
    operation = Update(
        updated_fragments=fragments,
        fields_modified=fields,
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=shared.offsets,
    )
    pending = column_changes.pending_columns(snapshot, files)
    if kept is not None:
        pending = pending.kept_on_failure()
        kept.check_present(snapshot.store, files)
    committed = commit_operation(snapshot, operation, properties=properties, pending=pending)
    if kept is not None:
        kept.remove(snapshot.store)
    return committed, shared.num_rows


@dataclass(frozen=True)
class _LocateTask:
    """Staged rows to locate in the table."""

    buckets: RowBuckets
    values: RowValues
    share: TaskShare


class _Sharing:
    """The pairs of all fragments, in files that are removed in the end."""

    def __init__(self, snapshot: Snapshot, ordered: Sequence[OrderedPairs], folder: str) -> None:
        self.target = SnapshotReference.of(snapshot)
        self.segments = {key: segment for each in ordered for key, segment in each.segments.items()}
        self.offsets = join_bitmaps(each.offsets for each in ordered)
        self.num_rows = sum(each.num_rows for each in ordered)
        self._store, self._folder = snapshot.store, folder

    @classmethod
    def of(cls, snapshot: Snapshot, values: RowValues, runner: Runner) -> _Sharing:
        """Run the tasks of the first two steps."""
        staged = values.staged.version.open()
        buckets = RowBuckets.of(snapshot, sum(fragment.physical_rows for fragment in staged.fragments))
        try:
            shares = share_rows(staged, None, message_bytes=buckets.message_bytes)
            locate = [_LocateTask(buckets, values, share) for share in shares]
            job = Job.on("locate rows of", snapshot.uri, snapshot.version)
            files = runner.map(_locate, locate, job.in_bytes(task.share.size_bytes for task in locate))
            stable = snapshot.manifest.uses_stable_row_ids
            ordered = buckets.order(snapshot, files, runner, with_offsets=stable)
        except BaseException:
            buckets.clear(snapshot)
            raise
        return cls(snapshot, ordered, buckets.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.child(self._folder).clear_or_leave()


def _locate(task: _LocateTask) -> by_tasks.SegmentFile:
    """Write one segment of pairs for each bucket."""
    snapshot, staged = task.buckets.target.open(), task.values.staged.version.open()
    request = task.share.request(staged, staged.schema.project([ROW_KEY]))
    pairs = [_pairs_of(snapshot, task.values, rows) for rows in scan_rows(staged, request)]
    return task.buckets.write(snapshot, *np.concatenate([np.empty((2, 0), np.uint64), *pairs], axis=1))


def _pairs_of(snapshot: Snapshot, values: RowValues, rows: ScannedRows) -> Uint64Array:
    """Return the addresses that the staged rows name, and their own, of shape (2, n)."""
    found = locate_rows(snapshot, rows.table.column(ROW_KEY), by_id=values.by_id)
    return np.stack([found, rows.addresses(np.arange(len(rows)))])


@dataclass(frozen=True)
class _SharedValues(ColumnSource):
    """Staged values for rows of many fragments, by the segments of their pairs.

    Rows of the table without a staged row keep their values of the columns `kept`, and get nulls in others.
    """

    values: RowValues
    target: SnapshotReference
    segments: Mapping[int, Segment]
    kept: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (ROW_ADDRESS, *self.kept)

    @property
    def description(self) -> str:
        return f"staged values in {self.values.staged.version.uri}"

    def for_fragments(self, fragment_ids: Collection[int]) -> _SharedValues:
        return replace(self, segments={key: self.segments[key] for key in fragment_ids if key in self.segments})

    def opened(self) -> ColumnSource:
        pairs = by_tasks.decode_pairs(by_tasks.read_segments(self.target.open(), tuple(self.segments.values())))
        return _OrderedValues(self, *pairs)

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        return self.opened().compute(rows, schema, rows_name)


@dataclass(frozen=True)
class _OrderedValues(ColumnSource):
    """Staged values for rows of one fragment: `staged` has the address of the staged row for each of `addresses`."""

    shared: _SharedValues
    addresses: Uint64Array = field(compare=False)
    staged: Uint64Array = field(compare=False)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.shared.reads

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        wanted, asked = schema.to_arrow_storage(), numbers_of(rows.column(ROW_ADDRESS))
        begin = np.searchsorted(self.addresses, asked[0]) if len(asked) else 0
        end = np.searchsorted(self.addresses, asked[-1], side="right") if len(asked) else 0
        given = np.searchsorted(asked, self.addresses[begin:end])
        values = self.shared.values.staged.take(wanted.names, wanted, self.staged[begin:end]).select(wanted.names)
        source, missing = np.arange(len(asked)), np.ones(len(asked), np.bool_)
        if self.shared.kept:
            source[given] = len(asked) + np.arange(len(given))
            old = rows.select(wanted.names)
            return rows_at(pa.concat_tables([old, values.cast(old.schema)]), source)
        source[given], missing[given] = np.arange(len(given)), False
        return rows_at(values, pa.array(source, mask=missing))
