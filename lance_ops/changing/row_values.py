"""Give rows of a table new values, which a staged dataset holds beside the address or the id of each row, by tasks.

    1. locate   for each staged row, a pair of addresses: that of the table's row and its own; pairs go to buckets
    2. order    each bucket's pairs by the table's row; a row that is there twice, or not at all, is refused
    3. write    a file for each fragment, with values that are taken from the staged rows by address

A bucket is a range of fragments, so no task sees all pairs. What a step leaves for the next is in files; the process
that plans gets three numbers for each fragment. No column file is written before every pair was checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.changing import columns as column_changes
from lance_ops.changing.columns import ColumnSource, ReplacedValues
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.changing.merge_insert.by_tasks import Segment, SourceRows
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addr
from lance_ops.core.arrow import numbers_of, rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, ScannedRows, scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table.rows import bitmap_of
from lance_ops.transactions import Update, UpdateMode
from lance_ops.writing import TaskShare, commit_operation, conform_present_columns, share_rows

__all__ = ["ROW_KEY", "RowValues", "add_row_values", "key_and_values", "named_rows", "replace_row_values"]

ROW_KEY = "__row"
"""The column of the staged rows that names the table's row: an unsigned number of 64 bits."""

_PAIRS_PER_BUCKET = 1 << 20
_FRAGMENT_ID = "_fragid"  # what reads of Spark call the fragment's id

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
        tasks = column_changes.plan_backfill(snapshot, columns, source, kept=kept)
        tasks = tuple(task for task in tasks if task.fragment_id in shared.segments)
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
    pending = pending if kept is None else pending.kept_on_failure()
    committed = commit_operation(snapshot, operation, properties=properties, pending=pending)
    if kept is not None:
        kept.remove(snapshot.store)
    return committed, shared.num_rows


def key_and_values(names: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return which column of data names rows, if one does, and which columns have values: none that scans add."""
    listed = tuple(names)
    key = next((name for name in (ROW_ADDRESS, ROW_ID) if name in listed), None)
    return key, tuple(name for name in listed if name not in ROW_COLUMNS and name != _FRAGMENT_ID)


def named_rows(snapshot: Snapshot, keys: pa.ChunkedArray, *, by_id: bool) -> Uint64Array:
    """Return the addresses of the rows that addresses, or with `by_id` row ids, name; in the order of the keys.

    Raises `InvalidInput` as `add_row_values` does.
    """
    addresses = _located(snapshot, keys, by_id=by_id)
    _live_rows(snapshot, np.sort(addresses))
    return addresses


@dataclass(frozen=True)
class _LocateTask:
    """Staged rows to locate in the table; `firsts` has the first fragment of each bucket."""

    target: SnapshotReference
    values: RowValues
    share: TaskShare
    firsts: Uint64Array
    folder: str


@dataclass(frozen=True)
class _OrderTask:
    """The pairs of one bucket; `with_offsets` asks for the located rows as bitmaps, too."""

    target: SnapshotReference
    pairs: tuple[Segment, ...]
    folder: str
    with_offsets: bool


@dataclass(frozen=True)
class _OrderedPairs:
    """Where each fragment's ordered pairs are; `offsets` has its rows as serialized Roaring bitmaps."""

    segments: Mapping[int, Segment]
    offsets: Mapping[int, bytes]
    num_rows: int


class _Sharing:
    """The pairs of all fragments, in files that are removed in the end."""

    def __init__(self, snapshot: Snapshot, ordered: Sequence[_OrderedPairs], folder: str) -> None:
        self.target = SnapshotReference.of(snapshot)
        self.segments = {key: segment for each in ordered for key, segment in each.segments.items()}
        self.offsets = {key: BitMap.deserialize(data) for each in ordered for key, data in each.offsets.items()}
        self.num_rows = sum(each.num_rows for each in ordered)
        self._store, self._folder = snapshot.store, folder

    @classmethod
    def of(cls, snapshot: Snapshot, values: RowValues, runner: Runner) -> _Sharing:
        """Run the tasks of the first two steps."""
        staged, folder = values.staged.version.open(), by_tasks.new_folder()
        num_rows = sum(fragment.physical_rows for fragment in staged.fragments)
        target, ids = SnapshotReference.of(snapshot), np.array(sorted(snapshot.fragments_by_id), np.uint64)
        num_buckets = max(1, min(len(ids), -(-num_rows // _PAIRS_PER_BUCKET)))
        firsts = np.array([each[0] for each in np.array_split(ids, num_buckets) if len(each)], np.uint64)
        try:
            shares = share_rows(staged, None, message_bytes=num_buckets * by_tasks.BYTES_OF_END)
            locate = [_LocateTask(target, values, share, firsts, folder) for share in shares]
            job = Job.on("locate rows of", snapshot.uri, snapshot.version)
            files = runner.map(_locate, locate, job.in_bytes(task.share.size_bytes for task in locate))
            stable = snapshot.manifest.uses_stable_row_ids
            buckets = [by_tasks.segments_of(files, bucket) for bucket in range(len(firsts))]
            order = [_OrderTask(target, pairs, folder, stable) for pairs in buckets if pairs]
            ordered = runner.map(_order, order, Job.on("order rows of", snapshot.uri, snapshot.version))
        except BaseException:
            snapshot.store.child(folder).clear()
            raise
        return cls(snapshot, ordered, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.child(self._folder).clear()


def _locate(task: _LocateTask) -> by_tasks.SegmentFile:
    """Write one segment of pairs for each bucket."""
    snapshot, staged = task.target.open(), task.values.staged.version.open()
    request = task.share.request(staged, staged.schema.project([ROW_KEY]))
    pairs = [_pairs_of(snapshot, task.values, rows) for rows in scan_rows(staged, request)]
    left, right = np.concatenate([np.empty((2, 0), np.uint64), *pairs], axis=1)
    buckets = np.searchsorted(task.firsts[1:], fragment_of(left), side="right")
    order = np.argsort(buckets, kind="stable")
    ends = np.searchsorted(buckets[order], np.arange(len(task.firsts)), side="right")
    return _write(snapshot, task.folder, left[order], right[order], ends)


def _pairs_of(snapshot: Snapshot, values: RowValues, rows: ScannedRows) -> Uint64Array:
    """Return the addresses that the staged rows name, and their own, of shape (2, n)."""
    found = _located(snapshot, rows.table.column(ROW_KEY), by_id=values.by_id)
    return np.stack([found, rows.addresses(np.arange(len(rows)))])


def _located(snapshot: Snapshot, keys: pa.ChunkedArray, *, by_id: bool) -> Uint64Array:
    """Return the address that each key names; raise `InvalidInput` for a null, and for an id without a row."""
    if keys.null_count:
        key_name = ROW_ID if by_id else ROW_ADDRESS
        raise InvalidInput(f"{keys.null_count} rows of the data have no {key_name}: leave them out")
    named = numbers_of(keys).astype(np.uint64, copy=False)
    if not (by_id and snapshot.manifest.uses_stable_row_ids):
        return named
    found = snapshot.row_id_index.find(named)
    gone = np.flatnonzero(found == np.uint64(TOMBSTONE_ROW))
    if len(gone):
        raise InvalidInput(
            f"{snapshot.uri}: no row of version {snapshot.version} has {ROW_ID} {named[gone[0]]}: it was deleted, "
            "or never there"
        )
    return found


def _order(task: _OrderTask) -> _OrderedPairs:
    """Write the pairs of each fragment as one segment, ascending by the table's row."""
    snapshot = task.target.open()
    left, right = by_tasks.decode_pairs(by_tasks.read_segments(snapshot, task.pairs))
    order = np.argsort(left)
    left, right = left[order], right[order]
    located = _live_rows(snapshot, left)
    ends = np.cumsum([len(rows) for rows in located.values()], dtype=np.int64)
    file = _write(snapshot, task.folder, left, right, ends)
    segments = {fragment_id: file.segment(number) for number, fragment_id in enumerate(located)}
    offsets = {key: rows.serialize() for key, rows in located.items()} if task.with_offsets else {}
    return _OrderedPairs(segments, offsets, len(left))


def _live_rows(snapshot: Snapshot, ascending: Uint64Array) -> dict[int, BitMap]:
    """Return the offsets of the rows at these addresses, by fragment.

    Raises `InvalidInput` if two addresses are the same, or if one is no live row.
    """
    _check_once(ascending)
    ids, starts = np.unique(fragment_of(ascending), return_index=True)
    ends = np.append(starts, len(ascending))[1:]
    return {
        int(fragment_id): _check_live(snapshot, int(fragment_id), ascending[start:end])
        for fragment_id, start, end in zip(ids, starts, ends, strict=True)
    }


def _check_once(ascending: Uint64Array) -> None:
    twice = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(twice):
        raise InvalidInput(
            f"several rows of the data name the same row, such as {_shown(int(ascending[twice[0]]))}: leave one of them"
        )


def _check_live(snapshot: Snapshot, fragment_id: int, addresses: Uint64Array) -> BitMap:
    """Return the offsets of the rows at these addresses; raise `InvalidInput` if one is no live row."""
    fragment, offsets = snapshot.fragments_by_id.get(fragment_id), offset_of(addresses)
    version = f"version {snapshot.version} of {snapshot.uri}"
    if fragment is None:
        raise InvalidInput(
            f"{version} has no fragment of {_shown(int(addresses[0]))}: read the addresses from this version"
        )
    if offsets[-1] >= fragment.physical_rows:
        raise InvalidInput(f"{version} has no row at {_shown(int(addresses[-1]))}: the fragment has fewer rows")
    rows = bitmap_of(offsets)
    deleted = rows & snapshot.deletion_vector(fragment)
    if deleted:
        raise InvalidInput(
            f"{len(deleted)} rows that the data names are deleted in {version}, such as "
            f"{_shown(row_addr(fragment_id, deleted.min()))}: leave them out"
        )
    return rows


def _shown(address: int) -> str:
    return f"{ROW_ADDRESS} {address} (fragment {fragment_of(address)}, row {offset_of(address)})"


def _write(
    snapshot: Snapshot, folder: str, left: Uint64Array, right: Uint64Array, ends: Int64Array
) -> by_tasks.SegmentFile:
    """Write pairs as segments that end at these positions."""
    starts = [0, *ends[:-1]]
    segments = [
        by_tasks.encode_pairs(left[start:end], right[start:end]) for start, end in zip(starts, ends, strict=True)
    ]
    return by_tasks.write_segments(snapshot.store, folder, segments)


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

    def for_fragment(self, fragment_id: int) -> _SharedValues:
        segment = self.segments.get(fragment_id)
        return replace(self, segments={} if segment is None else {fragment_id: segment})

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
