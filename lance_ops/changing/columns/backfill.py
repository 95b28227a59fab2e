"""Give every fragment one more data file, with values of some columns for the rows it has.

    plan_backfill(snapshot, columns, source) -> tasks     one a fragment
    write_columns(task) -> ColumnFile                     anywhere

Deleted rows get nulls (or, where none are allowed, a neighbour's value), so that a row stands at the same offset in all
files of its fragment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_ops.changing.columns.column_sources import ColumnSource
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import DATA_DIR, data_file_name
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import Dictionaries, FileWriter
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    TASK_READAHEAD,
    VERSION_COLUMNS,
    RowOffsets,
    ScannedRows,
    ScanRequest,
    offset_array,
    scan_rows,
)
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import TOMBSTONED_FIELD, DataFile, Fragment
from lance_ops.transactions import PendingFiles
from lance_ops.writing import conform_to_schema

__all__ = [
    "BackfillTask",
    "ColumnFile",
    "fragments_with_column_files",
    "pending_columns",
    "plan_backfill",
    "write_columns",
    "write_streamed_columns",
]


@dataclass(frozen=True)
class BackfillTask:
    """A fragment of one version to write `columns` for, in batches of at most `batch_size` rows."""

    snapshot: SnapshotReference
    fragment_id: int
    columns: Schema
    source: ColumnSource
    batch_size: int | None = None


@dataclass(frozen=True)
class ColumnFile:
    """A new file of a fragment, not yet part of any version; who commits it makes it durable."""

    fragment_id: int
    file: DataFile


def plan_backfill(
    snapshot: Snapshot, columns: Schema, source: ColumnSource, batch_size: int | None = None
) -> tuple[BackfillTask, ...]:
    """Return one task a fragment; raise `UnsupportedFeature` where files of the table's version cannot be added to."""
    _check_version(snapshot, columns)
    if batch_size is not None and batch_size < 1:
        raise InvalidInput(f"batch_size must be positive, not {batch_size}")
    reference = SnapshotReference.of(snapshot)
    return tuple(BackfillTask(reference, part.id, columns, source, batch_size) for part in snapshot.fragments)


def write_columns(task: BackfillTask) -> ColumnFile:
    """Write the fragment's file; on an error nothing is left of it."""
    snapshot = task.snapshot.open()
    fragment = snapshot.fragments_by_id[task.fragment_id]
    reads = task.source.reads
    request = ScanRequest(
        snapshot.schema.project(path for path in reads if path not in ROW_COLUMNS),
        with_row_id=ROW_ID in reads,
        # a table without columns would have no rows
        with_row_address=ROW_ADDRESS in reads or not reads,
        version_columns=tuple(name for name in reads if name in VERSION_COLUMNS),
        fragment_ids=(fragment.id,),
        readahead=TASK_READAHEAD,
    )

    def computed() -> Iterator[tuple[RowOffsets, pa.Table]]:
        for rows in _in_batches(scan_rows(snapshot, request), task.batch_size):
            files = [file.path for file in fragment.files]
            place = f"{files} {fragment.deletion_path} {rows.offsets[0]}+{len(rows)}"
            yield rows.offsets, task.source.compute(rows.table, task.columns, place)

    return _write(snapshot, fragment, task.columns, computed())


def write_streamed_columns(
    snapshot: Snapshot,
    columns: Schema,
    batches: Iterable[pa.RecordBatch],
    fragments: Sequence[Fragment] | None = None,
) -> list[ColumnFile]:
    """Write the fragments' files (every one's by default) from a stream with a row for each live row, in their order.

    Raises `InvalidInput` when it has more or fewer; on an error nothing is left.
    """
    _check_version(snapshot, columns)
    written: list[ColumnFile] = []
    dictionaries = Dictionaries(columns)
    rows = _Rows(batches)
    try:
        for fragment in snapshot.fragments if fragments is None else fragments:
            live = snapshot.live_offsets(fragment)
            written.append(_write(snapshot, fragment, columns, rows.next(live), dictionaries))
        if rows.any_left():
            raise InvalidInput("the stream has more rows than there are live ones")
    except BaseException:
        pending_columns(snapshot, written).abandon()
        raise
    return written


def fragments_with_column_files(
    snapshot: Snapshot, schema: Schema, files: Sequence[ColumnFile], replaced: Iterable[int] = ()
) -> tuple[Fragment, ...]:
    """Return the fragments with their new files, without files that hold no field of the schema any more.

    The values of the fields `replaced` are read from the new files: their old places are tombstoned.
    """
    known, gone = {node.id for node in schema.walk()}, set(replaced)
    added = {file.fragment_id: file.file for file in files}

    def changed(fragment: Fragment) -> Fragment:
        new = added.get(fragment.id)
        old = [_tombstoned(file, gone) for file in fragment.files] if new is not None else list(fragment.files)
        kept = [file for file in old if known.intersection(file.live_fields)]
        return replace(fragment, files=(*kept, *([new] if new is not None else [])))

    return tuple(map(changed, snapshot.fragments))


def pending_columns(snapshot: Snapshot, files: Iterable[ColumnFile]) -> PendingFiles:
    """Return the files as pending ones: `write_columns` leaves them unsynced."""
    return PendingFiles.at(snapshot.store, (f"{DATA_DIR}/{file.file.path}" for file in files), durable=False)


def _tombstoned(file: DataFile, gone: set[int]) -> DataFile:
    return replace(file, fields=tuple(TOMBSTONED_FIELD if field in gone else field for field in file.fields))


def _write(
    snapshot: Snapshot,
    fragment: Fragment,
    columns: Schema,
    parts: Iterable[tuple[RowOffsets, pa.Table]],
    dictionaries: Dictionaries | None = None,
) -> ColumnFile:
    """Write one file; each part comes with the ascending offsets of its rows."""
    name, arrow_schema = data_file_name(), columns.to_arrow_storage()
    version, nulls = snapshot.file_version, True
    batch_offsets: tuple[int, ...] = (0,)
    if version is FileVersion.V0_1:  # which holds no nulls, and whose readers go through a fragment's files together
        batch_offsets, nulls = snapshot.reader(fragment).batch_offsets(), False
    path = f"{DATA_DIR}/{name}"
    done = 0
    try:
        with FileWriter(
            snapshot.store,
            path,
            columns,
            version,
            dictionaries=dictionaries,
            batch_offsets=batch_offsets,
            durable=False,
        ) as writer:
            for offsets, made, is_last in _with_last(parts):
                end = fragment.physical_rows if is_last else int(offsets[-1]) + 1
                writer.write_batch(_spread(conform_to_schema(made, arrow_schema), offsets, done, end, nulls))
                done = end
            if done < fragment.physical_rows:  # not one row is live
                writer.write_batch(_spread(arrow_schema.empty_table(), range(0), 0, fragment.physical_rows))
            written = writer.finish()
    except BaseException:
        PendingFiles.at(snapshot.store, [path]).abandon()  # it may exist: the response to its close can be lost
        raise
    file = DataFile(
        path=name,
        fields=written.fields,
        column_indices=written.column_indices,
        file_major_version=written.major,
        file_minor_version=written.minor,
        file_size_bytes=written.size_bytes,
    )
    return ColumnFile(fragment.id, file)


def _with_last(parts: Iterable[tuple[RowOffsets, pa.Table]]) -> Iterator[tuple[RowOffsets, pa.Table, bool]]:
    """Yield the parts, each with whether it is the last."""
    waiting: tuple[RowOffsets, pa.Table] | None = None
    for part in parts:
        if waiting is not None:
            yield (*waiting, False)
        waiting = part
    if waiting is not None:
        yield (*waiting, True)


def _spread(rows: pa.Table, offsets: RowOffsets, start: int, stop: int, nulls: bool = True) -> pa.Table:
    """Return a table of rows `start` to `stop` with `rows` at these ascending offsets.

    Elsewhere are nulls, where they are allowed.
    """
    length = stop - start
    if len(rows) == length:
        return rows
    places = offset_array(offsets).astype(np.int64) - start
    source = np.searchsorted(places, np.arange(length), side="right") - 1
    empty = np.ones(length, np.bool_)
    empty[places] = False
    nearest = source.clip(min=0)
    with_nulls, without = pa.array(nearest, mask=empty), pa.array(nearest)
    columns = [
        rows_at(rows.select([at]), with_nulls if (nulls and field.nullable) or not len(rows) else without).column(0)
        for at, field in enumerate(rows.schema)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _in_batches(found: Iterable[ScannedRows], batch_size: int | None) -> Iterator[ScannedRows]:
    for rows in found:
        if batch_size is None:
            yield rows
            continue
        yield from (rows.slice(at, batch_size) for at in range(0, len(rows), batch_size))


def _check_version(snapshot: Snapshot, columns: Schema) -> None:
    """Refuse to add files where readers do not expect them."""
    blob = next((field for field in columns.fields if field.holds_blobs_v2), None)
    if blob is not None:
        raise UnsupportedFeature("blobs in a file of their own", f"column {blob.name!r}")
    inside = next((field for field in columns.fields if snapshot.schema.by_id(field.id) is not None), None)
    version = snapshot.file_version
    if inside is not None and version < FileVersion.V2_1:  # files list structs too, and each field stands in one file
        raise UnsupportedFeature(
            f"new values inside of a struct of file version {version.value}", f"column {inside.name!r}"
        )


class _Rows:
    """A stream of rows, cut into as many as are asked for."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if batch.num_rows)
        self._rest: pa.RecordBatch | None = None

    def next(self, offsets: RowOffsets) -> Iterator[tuple[RowOffsets, pa.Table]]:
        """Yield a row for each offset; raise `InvalidInput` when the stream ends before."""
        at = 0
        while at < len(offsets):
            if not self.any_left() or self._rest is None:
                raise InvalidInput(f"the stream ended {len(offsets) - at} rows before a fragment's last")
            part = self._rest.slice(0, len(offsets) - at)
            left = self._rest.slice(part.num_rows)
            self._rest = left if left.num_rows else None
            yield offsets[at : at + part.num_rows], pa.Table.from_batches([part])
            at += part.num_rows

    def any_left(self) -> bool:
        """Return whether a row was not handed out yet."""
        if self._rest is None:
            self._rest = next(self._batches, None)
        return self._rest is not None
