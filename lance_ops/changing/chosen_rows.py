"""Change rows that somebody else chose: delete some, give others new values, add new ones, in one commit.

    ChosenRowsTask(batches) -> ChosenRowsOutcome     anywhere: new fragments, and the old rows that they replace
    commit_chosen(snapshot, task, outcomes, predicate) -> new snapshot, numbers
                                                     deletion files, many by tasks; one transaction

A batch names each row by its address in the version, and says what happens to it. The task that gets a row to update
reads the row's other columns and writes the whole row. So nothing is joined or shuffled here, and no row reaches the
driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_ops.blobs import take_to_rewrite
from lance_ops.changing.merge_insert import MergeCounts, encode_keys
from lance_ops.core.addresses import row_addr
from lance_ops.core.arrow import numbers_of, rows_at, safe_to_take
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScanRequest
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference, projected_sizes
from lance_ops.table import Fragment
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import Delete, InsertedKeys, PendingFiles, Update, remove_files_of_job
from lance_ops.writing import UpdatedRowWriter, choose_file_version, commit_operation, write_deletion_files

__all__ = ["ChosenRowsOutcome", "ChosenRowsTask", "RowChosenTwice", "commit_chosen"]

_ROWS_AT_ONCE = 1 << 16
_BLOBS_AT_ONCE = 256
_BYTES_AT_ONCE = 64 << 20
"""About how many bytes a task has in memory at once of new values, and of the columns that updated rows keep."""


class RowChosenTwice(InvalidInput):
    """A row would get two new values, or be deleted and get one; `address` is the row's."""

    def __init__(self, address: int) -> None:
        super().__init__(f"the row at {ROW_ADDRESS} {address} is chosen twice: choose it once")
        self.address = address


@dataclass(frozen=True)
class ChosenRowsOutcome:
    """New fragments, and serialized Roaring bitmaps of the offsets of updated and of deleted rows, by fragment.

    `inserted_keys` is the encoded filter of the primary keys of inserted rows. `chosen_twice` is the address of a row
    that was chosen twice. Both are None if there is none.
    """

    updated_offsets: Mapping[int, bytes]
    deleted_offsets: Mapping[int, bytes]
    fragments: tuple[Fragment, ...]
    num_inserted: int
    inserted_keys: bytes | None
    chosen_twice: int | None

    def pending(self, snapshot: Snapshot) -> PendingFiles:
        """Return the files of the new fragments, which are not durable yet."""
        return PendingFiles.of_fragments(snapshot.file_locations, self.fragments, durable=False)


@dataclass(frozen=True)
class ChosenRowsTask:
    """Changes chosen rows of a version.

    In a batch the first column is `UPDATE`, `DELETE` or `INSERT`, and the second the address of a row to update or to
    delete. The others are values by the table's column, which `fit` brings to the types of the table. Of these an
    update writes `updated_columns`, and the row keeps what it has in other columns. `on` are the key columns of a
    merge: if they are the declared primary key, the commit carries a filter of the inserted keys.
    """

    version: SnapshotReference
    updated_columns: tuple[str, ...]
    file_version: FileVersion
    fit: Callable[[pa.RecordBatch], pa.RecordBatch]
    on: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        updated_columns: Iterable[str],
        fit: Callable[[pa.RecordBatch], pa.RecordBatch],
        on: Iterable[str] = (),
    ) -> ChosenRowsTask:
        """Return what changes rows of an open version."""
        return cls(
            SnapshotReference.of(snapshot), tuple(updated_columns), choose_file_version(snapshot, None), fit, tuple(on)
        )

    @staticmethod
    def job(verb: str, snapshot: Snapshot) -> Job:
        """Return the job of such tasks."""
        remove = partial(remove_files_of_job, snapshot.store)
        return Job.on(verb, snapshot.uri, snapshot.version, remove_files=remove)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> ChosenRowsOutcome:
        """Write the new values; on an error all files are deleted."""
        snapshot = self.version.open().verifying()
        kept = Schema(tuple(each for each in snapshot.schema.fields if each.name not in self.updated_columns))
        updated, deleted = _Chosen(), _Chosen()
        num_inserted = 0
        keys: list[bytes | None] = []
        with ExitStack() as stack:
            writer = stack.enter_context(UpdatedRowWriter(snapshot, self.file_version))
            # Rows that keep their ids must come before new ones in a fragment, so new ones get their own.
            new = stack.enter_context(UpdatedRowWriter(snapshot, self.file_version)) if writer.keeps_ids else writer
            for batch in _together(batches, _rows_at_once(snapshot, kept)):
                action, addresses = batch.column(0), batch.column(1)
                deleted.add(_addresses(addresses, _is(action, "DELETE")))
                changes = _is(action, "UPDATE")
                if changes.any():
                    named = _addresses(addresses, changes)
                    updated.add(named)
                    order, values = np.argsort(named, kind="stable"), self._values(batch, changes, self.updated_columns)
                    _write_updated(writer, snapshot, kept, named[order], rows_at(values, order))
                adds = _is(action, "INSERT")
                if adds.any():
                    added = self._values(batch, adds, batch.schema.names[2:])
                    new.write_new(added)
                    num_inserted += len(added)
                    keys.append(encode_keys(snapshot, self.on, added))
            fragments = (*writer.finish(), *(new.finish() if new is not writer else ()))
        twice = updated.chosen_twice(deleted)
        return ChosenRowsOutcome(
            updated.serialized(), deleted.serialized(), fragments, num_inserted, _joined(keys), twice
        )

    def _values(self, batch: pa.RecordBatch, chosen: BoolArray, names: Sequence[str]) -> pa.Table:
        """Return the new values of the chosen rows in these columns, in the types of the table."""
        values = batch.select(range(2, batch.num_columns)).select(list(names))
        return safe_to_take(pa.Table.from_batches([self.fit(values.filter(pa.array(chosen)))]))


def commit_chosen(
    snapshot: Snapshot,
    task: ChosenRowsTask,
    outcomes: Sequence[ChosenRowsOutcome],
    predicate: str,
    runner: Runner | None = None,
) -> tuple[Snapshot, MergeCounts]:
    """Write the deletion files and commit what all tasks changed; return the snapshot and the numbers of rows.

    `runner` writes the deletion files as in `write_deletion_files`. If no row changes, nothing is committed.
    `predicate` is what the transaction of a mere deletion says of its rows.

    Raises `RowChosenTwice`, and `RetryableConflict` when a concurrent transaction touched the same rows: choose them
    again in the newest version.
    """
    pending = sum((each.pending(snapshot) for each in outcomes), PendingFiles())
    with pending.abandoned_on_failure():
        updated, deleted = _Chosen(), _Chosen()
        for outcome in outcomes:
            if outcome.chosen_twice is not None:
                raise RowChosenTwice(outcome.chosen_twice)
            updated.add_serialized(outcome.updated_offsets)
            deleted.add_serialized(outcome.deleted_offsets)
        twice = updated.chosen_twice(deleted)
        if twice is not None:
            raise RowChosenTwice(twice)
        counts = MergeCounts(sum(each.num_inserted for each in outcomes), updated.num_rows, deleted.num_rows)
        if counts == MergeCounts(0, 0, 0):
            return snapshot, counts
        inserted_rows = _joined([each.inserted_keys for each in outcomes if each.num_inserted])
        deletions = write_deletion_files(snapshot, updated.joined(deleted), runner)
    if not pending.fragments:
        operation = Delete(deletions.updated_fragments, deletions.removed_fragment_ids, predicate)
        return commit_operation(snapshot, operation, pending=deletions.pending), counts
    only_updates = not (counts.inserted or counts.deleted)
    written = snapshot.schema.project(task.updated_columns) if only_updates else snapshot.schema
    update = Update(
        removed_fragment_ids=deletions.removed_fragment_ids,
        updated_fragments=deletions.updated_fragments,
        new_fragments=pending.fragments,
        fields_for_preserving_frag_bitmap=tuple(node.id for node in written.walk()),
        inserted_rows=inserted_rows,
    )
    return commit_operation(snapshot, update, pending=pending + deletions.pending), counts


@dataclass
class _Chosen:
    """Offsets of rows by fragment; `twice` is the address of one that was added twice."""

    offsets: dict[int, BitMap] = field(default_factory=dict)
    twice: int | None = None

    def add(self, addresses: Uint64Array) -> None:
        """Add rows in any order."""
        ordered = np.sort(addresses)
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(same):
            self.twice = int(ordered[same[0]])
        for fragment_id, offsets in RowAddressSet.from_addresses(ordered):
            self._add(fragment_id, offsets)

    def add_serialized(self, offsets: Mapping[int, bytes]) -> None:
        """Add rows of an outcome."""
        for fragment_id, rows in join_bitmaps([offsets]).items():
            self._add(fragment_id, rows)

    def chosen_twice(self, other: _Chosen) -> int | None:
        """Return the address of a row that was added twice, or is in the other rows, too; None if there is none."""
        if self.twice is not None:
            return self.twice
        for fragment_id, offsets in self.offsets.items():
            both = offsets & other.offsets.get(fragment_id, BitMap())
            if both:
                return row_addr(fragment_id, both.min())
        return None

    def joined(self, other: _Chosen) -> dict[int, BitMap]:
        """Return the rows of both."""
        ids = {*self.offsets, *other.offsets}
        return {each: self.offsets.get(each, BitMap()) | other.offsets.get(each, BitMap()) for each in ids}

    def serialized(self) -> dict[int, bytes]:
        """Return the offsets as an outcome has them."""
        return {fragment_id: offsets.serialize() for fragment_id, offsets in self.offsets.items()}

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.offsets.values()))

    def _add(self, fragment_id: int, offsets: BitMap) -> None:
        known = self.offsets.setdefault(fragment_id, BitMap())
        both = known & offsets
        if both:
            self.twice = row_addr(fragment_id, both.min())
        known.update(offsets)


def _write_updated(
    writer: UpdatedRowWriter, snapshot: Snapshot, kept: Schema, addresses: Uint64Array, values: pa.Table
) -> None:
    """Write rows with new values and with the values of the columns `kept` that they have, ascending by address."""
    if not (kept.fields or writer.keeps_ids):
        writer.write_updated(values, None)
        return
    request = ScanRequest(kept, with_row_id=True, with_row_address=True)
    old = take_to_rewrite(snapshot, addresses, request)
    for name in old.schema.names:
        if name not in (ROW_ID, ROW_ADDRESS):
            values = values.append_column(old.schema.field(name), old.column(name))
    writer.write_updated(values, numbers_of(old.column(ROW_ID)))


def _rows_at_once(snapshot: Snapshot, kept: Schema) -> int:
    """Return how many rows a task reads and writes together."""
    if any(node.is_blob_v1 or node.is_blob_v2 for node in kept.walk()):
        return _BLOBS_AT_ONCE
    first = snapshot.fragments[:1]
    num_rows = sum(fragment.physical_rows for fragment in first)
    num_bytes = sum(projected_sizes(snapshot, first, kept).values()) if num_rows and kept.fields else 0
    return (
        min(_ROWS_AT_ONCE, max(_BLOBS_AT_ONCE, _BYTES_AT_ONCE * num_rows // num_bytes)) if num_bytes else _ROWS_AT_ONCE
    )


def _is(actions: pa.Array, action: str) -> BoolArray:
    found: BoolArray = pc.equal(actions, action).to_numpy(zero_copy_only=False)
    return found


def _addresses(column: pa.Array, chosen: BoolArray) -> Uint64Array:
    return numbers_of(column.filter(pa.array(chosen))).astype(np.uint64, copy=False)


def _joined(keys: Sequence[bytes | None]) -> bytes | None:
    """Return the filter of the keys of several parts; None if a part has none."""
    if not keys or None in keys:
        return None
    return InsertedKeys.join_encoded([each for each in keys if each is not None])


def _together(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches, about this many at once, or fewer large ones: each write has a fixed cost."""
    parts: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for batch in batches:
        bytes_of_row = max(batch.nbytes // max(batch.num_rows, 1), 1)
        length = min(most_rows, max(_BYTES_AT_ONCE // bytes_of_row, 1))
        for start in range(0, batch.num_rows, length):
            parts.append(batch.slice(start, length))
            num_rows += parts[-1].num_rows
            num_bytes += parts[-1].num_rows * bytes_of_row
            if num_rows >= most_rows or num_bytes >= _BYTES_AT_ONCE:
                yield pa.concat_batches(parts)
                parts, num_rows, num_bytes = [], 0, 0
    if parts:
        yield pa.concat_batches(parts)
