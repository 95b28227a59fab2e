"""Step 3 of a merge by tasks: write deletion files by parts of the target, and new rows by parts of the source.

A row's values go from the source to the file that its own task writes. Only its address came through the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.blobs import schema_to_write, take_to_rewrite
from lance_ops.changing.columns import (
    ColumnFile,
    ReplacedValues,
    pending_columns,
    plan_value_replacement,
    write_columns,
)
from lance_ops.changing.merge_insert.by_tasks.key_join import NO_ROW
from lance_ops.changing.merge_insert.by_tasks.merge_parts import Part
from lance_ops.changing.merge_insert.by_tasks.segment_files import Segment, decode_pairs, read_segments
from lance_ops.changing.merge_insert.by_tasks.source_rows import SourceRows
from lance_ops.changing.merge_insert.inserted_key_filter import encode_inserted_keys
from lance_ops.changing.merge_insert.merge_request import BoundMerge, write_targets
from lance_ops.changing.merge_insert.merged_rows import with_missing_values_kept
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.addresses import fragment_of
from lance_ops.core.arrow import array_of_numbers, numbers_of, rows_at
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScannedRows, ScanRequest
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import Fragment
from lance_ops.transactions import InsertedKeys, PendingFiles
from lance_ops.writing import UpdatedRowWriter, choose_file_version, write_deletion_files

__all__ = ["ChangeTask", "ColumnTask", "DeletionTask", "RowTask", "WrittenChanges", "write_changes"]

_ROWS_AT_ONCE = 1 << 16
_BLOBS_AT_ONCE = 256


@dataclass(frozen=True)
class DeletionTask:
    """Pairs of some of the target's fragments; the task deletes their left rows."""

    target: SnapshotReference
    pairs: tuple[Segment, ...]


@dataclass(frozen=True)
class ColumnTask:
    """Pairs of some of the target's fragments; their left rows get the values of the right ones in place."""

    target: SnapshotReference
    merge: BoundMerge
    source: SourceRows
    pairs: tuple[Segment, ...]


@dataclass(frozen=True)
class RowTask:
    """A part of the source and its pairs; the task writes the part's updated and inserted rows."""

    target: SnapshotReference
    merge: BoundMerge
    source: SourceRows
    part: Part
    pairs: tuple[Segment, ...]


ChangeTask: TypeAlias = DeletionTask | ColumnTask | RowTask


@dataclass(frozen=True)
class WrittenChanges:
    """What a task wrote: metadata of files, which no version names yet and which are not durable."""

    new_fragments: tuple[Fragment, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    removed_fragment_ids: tuple[int, ...] = ()
    deletion_paths: tuple[str, ...] = ()
    columns: tuple[ColumnFile, ...] = ()
    updated_offsets: dict[int, bytes] = field(default_factory=dict)
    """With `columns`: the updated rows of each fragment, as a serialized Roaring bitmap of physical offsets."""
    num_inserted: int = 0
    inserted_keys: bytes | None = None

    def pending(self, snapshot: Snapshot, merge: BoundMerge) -> PendingFiles:
        """Return the files as pending ones."""
        locations = write_targets(snapshot, merge.request).locations
        return (
            PendingFiles.of_fragments(locations, self.new_fragments, durable=False)
            + PendingFiles.at(snapshot.store, self.deletion_paths, durable=False)
            + pending_columns(snapshot, self.columns)
        )


def write_changes(task: ChangeTask) -> WrittenChanges:
    """Write the task's files; on an error all are deleted."""
    match task:
        case DeletionTask():
            return _write_deletions(task)
        case ColumnTask():
            return _write_columns(task)
        case RowTask():
            return _write_rows(task)


def _write_deletions(task: DeletionTask) -> WrittenChanges:
    snapshot = task.target.open()
    segments = (decode_pairs(iter((data,))) for data in read_segments(snapshot, task.pairs))
    gone = RowAddressSet.union(RowAddressSet.from_addresses(left) for left, _ in segments)
    written = write_deletion_files(snapshot, gone.bitmaps)
    paths = tuple(path for _, path in written.pending.files)
    return WrittenChanges(
        updated_fragments=written.updated_fragments,
        removed_fragment_ids=written.removed_fragment_ids,
        deletion_paths=paths,
    )


def _write_columns(task: ColumnTask) -> WrittenChanges:
    """Write the files of one fragment after the other, so that the values of one are in memory."""
    snapshot, merge = task.target.open(), task.merge
    updated, source_rows = decode_pairs(read_segments(snapshot, task.pairs))
    keys = {key.path[0] for key in merge.keys}
    names = [name for name in merge.source.schema.names if name not in keys]
    files: list[ColumnFile] = []
    offsets = RowAddressSet.from_addresses(updated)
    try:
        for fragment_id in offsets.fragment_ids:
            here = fragment_of(updated) == fragment_id
            values = task.source.take(names, schema_to_write(snapshot.schema), source_rows[here])
            if merge.partial_structs:
                old = _old_values(snapshot, updated[here], list(merge.partial_structs), with_row_id=False)
                values = with_missing_values_kept(values, old, merge.partial_structs)
            replaced = ReplacedValues(ROW_ADDRESS, SourceKeys([array_of_numbers(updated[here])], [ROW_ADDRESS]), values)
            for each in plan_value_replacement(snapshot, replaced, [fragment_id]):
                files += write_columns(each)
    except BaseException:
        pending_columns(snapshot, files).abandon()
        raise
    bitmaps = {fragment_id: bitmap.serialize() for fragment_id, bitmap in offsets}
    return WrittenChanges(columns=tuple(files), updated_offsets=bitmaps)


def _write_rows(task: RowTask) -> WrittenChanges:
    """Write the updated rows and the inserted ones, together where their order does not matter.

    In a table of stable row ids the updated rows come first. So they do if the table has values that the source lacks.
    """
    snapshot, merge = task.target.open(), task.merge
    known, replaced = decode_pairs(read_segments(snapshot, task.pairs))
    is_updated = replaced != NO_ROW
    order = np.argsort(known[is_updated], kind="stable")
    updated, replaced = known[is_updated][order], replaced[is_updated][order]
    given = merge.source.schema.names
    missing = [name for name in snapshot.schema.names if name not in given or name in merge.partial_structs]
    chosen = RowAddressSet.from_addresses(updated)
    kept = RowAddressSet.from_addresses(known[~is_updated]) - chosen
    inserts = _Inserts(snapshot, merge)
    targets, version = write_targets(snapshot, merge.request), choose_file_version(snapshot, merge.request.file_version)
    with UpdatedRowWriter(snapshot, version, targets) as writer:
        if missing or writer.keeps_ids:
            for rows in _scanned(task, snapshot, chosen):
                for new, old_rows in _paired(rows, updated, replaced, snapshot.schema):
                    old = _old_values(snapshot, old_rows, missing)
                    row_ids = numbers_of(old.column(ROW_ID))
                    new = with_missing_values_kept(new, old.drop_columns([ROW_ID]), merge.partial_structs)
                    writer.write_updated(new, row_ids)
            if merge.request.inserts:
                for rows in _scanned(task, snapshot, _others(task, chosen | kept)):
                    writer.write_new(inserts.noted(rows.table))
        else:
            for rows in _scanned(task, snapshot, _others(task, kept) if merge.request.inserts else chosen):
                addresses = rows.addresses(np.arange(len(rows)))
                first, last = (np.searchsorted(updated, addresses, side=side) for side in ("left", "right"))
                inserts.noted(rows_at(rows.table, np.flatnonzero(first == last)))
                writer.write_new(rows_at(rows.table, np.repeat(np.arange(len(rows)), np.maximum(last - first, 1))))
        fragments = writer.finish()
    return WrittenChanges(fragments, num_inserted=inserts.num_rows, inserted_keys=inserts.keys)


class _Inserts:
    """Counts inserted rows, and collects the filter of their primary keys."""

    def __init__(self, snapshot: Snapshot, merge: BoundMerge) -> None:
        self._snapshot, self._merge = snapshot, merge
        self.num_rows = 0
        self.keys: bytes | None = None

    def noted(self, rows: pa.Table) -> pa.Table:
        """Return the rows, noted as inserted ones."""
        self.num_rows += len(rows)
        keys = encode_inserted_keys(self._snapshot, replace(self._merge, source=rows), np.arange(len(rows)))
        if keys is not None:
            parts = [InsertedKeys.decode(each) for each in (self.keys, keys) if each is not None]
            self.keys = InsertedKeys.join(parts).encode()
        return rows


def _scanned(task: RowTask, target: Snapshot, rows: RowAddressSet) -> Iterator[ScannedRows]:
    """Yield the task's source rows that are among `rows`, ascending by address."""
    if not rows:
        return iter(())
    return task.source.scan(task.merge.source.schema.names, schema_to_write(target.schema), task.part, rows)


def _others(task: RowTask, without: RowAddressSet) -> RowAddressSet:
    """Return the live rows of the task's part that are not in the set."""
    snapshot = task.source.version.open()
    bitmaps = {}
    for fragment_id in task.part.fragment_ids:
        fragment = snapshot.fragments_by_id[fragment_id]
        every = BitMap(task.part.rows_of(fragment))
        bitmaps[fragment_id] = every - snapshot.deletion_vector(fragment) - without.offsets(fragment_id)
    return RowAddressSet.from_bitmaps(bitmaps)


def _paired(
    rows: ScannedRows, updated: Uint64Array, replaced: Uint64Array, schema: Schema
) -> Iterator[tuple[pa.Table, Uint64Array]]:
    """Yield new rows with the addresses of the target's rows that they replace, a few at a time.

    `updated` are source rows, ascending, and `replaced` the target's row for each.
    """
    addresses = rows.addresses(np.arange(len(rows)))
    first = int(np.searchsorted(updated, addresses[0]))
    last = int(np.searchsorted(updated, addresses[-1], side="right"))
    step = _BLOBS_AT_ONCE if schema.holds_blobs_v2 else _ROWS_AT_ONCE
    for start in range(first, last, step):
        stop = min(start + step, last)
        positions = np.searchsorted(addresses, updated[start:stop])
        yield rows_at(rows.table, positions), replaced[start:stop]


def _old_values(
    snapshot: Snapshot, addresses: Uint64Array, names: Sequence[str], *, with_row_id: bool = True
) -> pa.Table:
    """Return the target's values of these columns, and with `with_row_id` the row ids."""
    schema = snapshot.schema.project(list(names)) if names else Schema(())
    request = ScanRequest(schema, with_row_id=with_row_id, with_row_address=True)
    return take_to_rewrite(snapshot, addresses, request).drop_columns([ROW_ADDRESS])
