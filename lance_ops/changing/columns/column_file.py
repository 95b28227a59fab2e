"""Write a data file of some columns for an existing fragment, and put such files into the fragments.

A row has the same offset in all files of its fragment. So the file also has a row for each deleted row: a null, or
where nulls are not allowed a neighbour's value, or a zero if no row of the file is live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import child_fields, rows_at
from lance_ops.core.file_names import DATA_DIR, data_file_name
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import Dictionaries, FileReader, FileWriter, WrittenFile
from lance_ops.reading import RowOffsets, offset_array
from lance_ops.snapshot import Snapshot
from lance_ops.table import DataFile, Fragment, with_tombstones
from lance_ops.transactions import PendingFiles
from lance_ops.writing import conform_to_schema

__all__ = [
    "ColumnFile",
    "can_join_pieces",
    "fragments_with_column_files",
    "join_column_pieces",
    "pending_columns",
    "write_column_file",
    "write_column_piece",
]


@dataclass(frozen=True)
class ColumnFile:
    """A new data file of a fragment, which no version names yet. It is not durable before the commit syncs it."""

    fragment_id: int
    file: DataFile


def write_column_file(
    snapshot: Snapshot,
    fragment: Fragment,
    columns: Schema,
    parts: Iterable[tuple[RowOffsets, pa.Table]],
    dictionaries: Dictionaries | None = None,
) -> ColumnFile:
    """Write the file of a fragment; each part comes with the ascending offsets of its rows.

    On an error the file is deleted.
    """
    path, arrow_schema = f"{DATA_DIR}/{data_file_name()}", columns.to_arrow_storage()
    version, nulls = snapshot.file_version, True
    batch_offsets: tuple[int, ...] = (0,)
    if version is FileVersion.V0_1:  # 0.1 has no nulls, and its readers need the same batches in all files
        batch_offsets, nulls = snapshot.reader(fragment).batch_offsets(), False
    with (
        PendingFiles.at(snapshot.store, [path]).abandoned_on_failure(),
        FileWriter(
            snapshot.store,
            path,
            columns,
            version,
            dictionaries=dictionaries,
            batch_offsets=batch_offsets,
            durable=False,
        ) as writer,
    ):
        _write_rows(writer, arrow_schema, parts, range(fragment.physical_rows), nulls)
        return _column_file(fragment, writer.finish())


def write_column_piece(
    snapshot: Snapshot,
    columns: Schema,
    parts: Iterable[tuple[RowOffsets, pa.Table]],
    rows: range,
    path: str,
    *,
    durable: bool,
) -> None:
    """Write a file of a fragment's rows at the offsets `rows`, which `join_column_pieces` makes a part of its file."""
    with FileWriter(snapshot.store, path, columns, snapshot.file_version, durable=durable) as writer:
        _write_rows(writer, columns.to_arrow_storage(), parts, rows, nulls=True)


def can_join_pieces(version: FileVersion, columns: Schema) -> bool:
    """Return whether pieces can be joined: the pages of 2.1 and later can be copied, but for blobs."""
    return version >= FileVersion.V2_1 and not any(node.is_blob_v1 or node.is_blob_v2 for node in columns.walk())


def join_column_pieces(snapshot: Snapshot, fragment: Fragment, columns: Schema, paths: Sequence[str]) -> ColumnFile:
    """Write the file of a fragment by copying the pages of its pieces, in order. On an error the file is deleted."""
    path = f"{DATA_DIR}/{data_file_name()}"
    with (
        PendingFiles.at(snapshot.store, [path]).abandoned_on_failure(),
        FileWriter(snapshot.store, path, columns, snapshot.file_version, durable=False) as writer,
    ):
        for piece in paths:
            writer.append_file(FileReader(snapshot.store, piece, verifies=True))
        return _column_file(fragment, writer.finish())


def fragments_with_column_files(
    snapshot: Snapshot, schema: Schema, files: Sequence[ColumnFile], replaced: Iterable[int] = ()
) -> tuple[Fragment, ...]:
    """Return the fragments with their new files, and without files that have no field of the schema any more.

    The new files replace the values of the fields `replaced`, which are tombstoned in the old files. So is a struct
    that a new file lists again, as a file of 0.1 with new values of some of its fields does.
    """
    field_ids, replaced_ids = {node.id for node in schema.walk()}, set(replaced)
    added = {file.fragment_id: file.file for file in files}

    def changed(fragment: Fragment) -> Fragment:
        new = added.get(fragment.id)
        again = replaced_ids.union(new.live_fields) if new is not None else replaced_ids
        old = [with_tombstones(file, again) for file in fragment.files] if new is not None else list(fragment.files)
        kept = [file for file in old if field_ids.intersection(file.live_fields)]
        return replace(fragment, files=(*kept, *([new] if new is not None else [])))

    return tuple(map(changed, snapshot.fragments))


def pending_columns(snapshot: Snapshot, files: Iterable[ColumnFile]) -> PendingFiles:
    """Return the files as pending ones: `write_columns` leaves them unsynced."""
    return PendingFiles.at(snapshot.store, (f"{DATA_DIR}/{file.file.path}" for file in files), durable=False)


def _write_rows(
    writer: FileWriter,
    arrow_schema: pa.Schema,
    parts: Iterable[tuple[RowOffsets, pa.Table]],
    rows: range,
    nulls: bool,
) -> None:
    """Write a row for each of the offsets `rows`; the parts have those of live rows."""
    start = rows.start
    for offsets, values, is_last in _with_last(parts):
        end = rows.stop if is_last else int(offsets[-1]) + 1
        writer.write_batch(_with_gaps_filled(conform_to_schema(values, arrow_schema), offsets, start, end, nulls))
        start = end
    if start < rows.stop:  # there is no live row
        deleted = [_valid_values(field, rows.stop - start) for field in arrow_schema]
        writer.write_batch(pa.Table.from_arrays(deleted, schema=arrow_schema))


def _column_file(fragment: Fragment, written: WrittenFile) -> ColumnFile:
    file = DataFile(
        path=written.path.rpartition("/")[2],
        fields=written.fields,
        column_indices=written.column_indices,
        file_major_version=written.major,
        file_minor_version=written.minor,
        file_size_bytes=written.size_bytes,
    )
    return ColumnFile(fragment.id, file)


def _with_last(parts: Iterable[tuple[RowOffsets, pa.Table]]) -> Iterator[tuple[RowOffsets, pa.Table, bool]]:
    """Yield the parts, each with whether it is the last."""
    previous: tuple[RowOffsets, pa.Table] | None = None
    for part in parts:
        if previous is not None:
            yield (*previous, False)
        previous = part
    if previous is not None:
        yield (*previous, True)


def _with_gaps_filled(rows: pa.Table, offsets: RowOffsets, start: int, stop: int, nulls: bool) -> pa.Table:
    """Return a table of the rows at offsets `start` to `stop`, with `rows`, one or more, at the ascending `offsets`.

    The other rows are null if `nulls` and the field allow it; else they copy a neighbour.
    """
    length = stop - start
    if len(rows) == length:
        return rows
    positions = offset_array(offsets).astype(np.int64) - start
    source = np.searchsorted(positions, np.arange(length), side="right") - 1
    empty = np.ones(length, np.bool_)
    empty[positions] = False
    nearest = source.clip(min=0)
    with_nulls, without = pa.array(nearest, mask=empty), pa.array(nearest)
    columns = [
        rows_at(rows.select([at]), with_nulls if nulls and field.nullable else without).column(0)
        for at, field in enumerate(rows.schema)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _valid_values(field: pa.Field, length: int) -> pa.Array:
    """Return values that a field allows: nulls, or else zeros and empty texts and lists."""
    kind = field.type
    if field.nullable:
        return pa.nulls(length, kind)
    if pt.is_dictionary(kind):
        indices, words = (pa.field("", each, nullable=False) for each in (kind.index_type, kind.value_type))
        return pa.DictionaryArray.from_arrays(_valid_values(indices, length), _valid_values(words, 1))
    zeros = pa.nulls(length, kind).buffers()[1 : kind.num_buffers]
    num_items = length * kind.list_size if pt.is_fixed_size_list(kind) else length if pt.is_struct(kind) else 0
    children = [_valid_values(each, num_items) for each in child_fields(kind)]
    return pa.Array.from_buffers(kind, length, [None, *zeros], children=children)
