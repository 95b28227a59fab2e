"""Check one data file of a fragment: it is there, it is what the manifest says, and its pages decode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lance_ops.core.errors import ReadTooLarge
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, row_bytes
from lance_ops.maintenance.verification.checks.blob_checks import BlobEnds, SidecarEnds
from lance_ops.maintenance.verification.checks.checksum_checks import agrees_with_checksums
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.snapshot import FragmentReader, Snapshot
from lance_ops.table import TOMBSTONED_FIELD, DataFile, Fragment
from lance_ops.table.manifest import ObjectLocation

__all__ = ["check_data_file", "column_windows", "decode_rows", "open_data_file"]

_WINDOW_BYTES = 16 * 1024 * 1024
"""Encoded bytes of one column that are decoded at a time."""

_DECODED_BYTES = 64 * 1024 * 1024
_WINDOW_ROWS = 1 << 20


def open_data_file(
    snapshot: Snapshot, file: DataFile, found: FindingCollector, *, checksums: bool
) -> FileReader | None:
    """Open a data file; record why and return None if it is missing, of another size, or has no valid metadata.

    With `checksums`, all its bytes are compared with their checksums first, if it carries any.
    """
    with found.errors_as(DamageKind.MANIFEST):
        location = snapshot.file_locations.data_file(file.base_id, file.path)
        if found.is_there(location, file.file_size_bytes):
            with found.errors_as(DamageKind.FILE_CONTENT, location.uri):
                if not checksums or agrees_with_checksums(location, found):
                    return snapshot.session.open_files.open(location, file.file_size_bytes)
    return None


def check_data_file(
    snapshot: Snapshot,
    fragment: Fragment,
    file: DataFile,
    reader: FileReader,
    found: FindingCollector,
    *,
    decode: bool,
    skip_rows: bool,
) -> None:
    """Compare an open file with its manifest entry and locate its blobs; with `decode`, read every page and sidecar.

    Columns that the snapshot's schema does not show, because they were dropped or replaced, are not decoded. With
    `skip_rows`, only columns of blobs are.
    """
    stated = FileVersion.from_numbers(*file.numbers, where=reader.path)
    if reader.version is not stated:
        detail = f"the file is of version {reader.version.value}, the manifest says {stated.value}"
        found.damaged(DamageKind.FILE_SCHEMA, detail, reader.path)
    if reader.num_rows != fragment.physical_rows:
        detail = f"{reader.num_rows} rows where the fragment has {fragment.physical_rows}"
        found.damaged(DamageKind.ROW_COUNT, detail, reader.path)
        return
    if not _columns_match(snapshot.schema, file, reader, found):
        return
    location = snapshot.file_locations.data_file(file.base_id, file.path)
    part, rows = snapshot.reader(replace(fragment, files=(file,))), range(fragment.physical_rows)
    sidecars = SidecarEnds(snapshot, file)
    for field in _columns_in(snapshot.schema, file):
        if _has_blobs(field) or (decode and not skip_rows):
            _read_column(part, field, rows, location, BlobEnds(snapshot, file, field, sidecars), found)
    shown = {node.id for field in snapshot.schema.fields for node in field.walk()}
    sidecars.check(found, compare=decode, is_complete=shown.issuperset(file.fields))


def decode_rows(
    snapshot: Snapshot, fragment: Fragment, file: DataFile, reader: FileReader, rows: range, found: FindingCollector
) -> None:
    """Decode physical rows of the columns without blobs of an open file, if it fits its manifest entry."""
    if not _columns_match(snapshot.schema, file, reader, FindingCollector(found.version)):
        return
    location = snapshot.file_locations.data_file(file.base_id, file.path)
    part = snapshot.reader(replace(fragment, files=(file,)))
    for field in _columns_in(snapshot.schema, file):
        if not _has_blobs(field):
            _read_column(part, field, rows, location, None, found)


def column_windows(reader: FragmentReader, schema: Schema, start: int, stop: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield the physical rows `start` to `stop` in windows of bounded memory, each with its first row.

    Raises `ReadTooLarge` only for a single row that is too large.
    """
    num_rows = max(stop - start, 1)
    by_size = reader.fragment.physical_rows * _WINDOW_BYTES // max(reader.encoded_bytes(schema), 1)
    by_type = _DECODED_BYTES // max(sum(row_bytes(field.arrow_type) for field in schema.fields), 1)
    window, first = max(1, min(num_rows, by_size, by_type, _WINDOW_ROWS)), start
    while first < stop:
        try:
            table = reader.read(schema, first, min(first + window, stop))
        except ReadTooLarge:
            if window == 1:
                raise
            window = max(1, window // 2)
            continue
        yield first, table
        first += window


def _columns_match(schema: Schema, file: DataFile, reader: FileReader, found: FindingCollector) -> bool:
    """Return whether the manifest's fields are in the file's columns; record what is wrong."""
    if reader.version is FileVersion.V0_1 or not file.column_indices:
        return True
    stored_ids = reader.field_ids
    if len(file.fields) != len(file.column_indices):
        detail = f"the manifest has {len(file.column_indices)} columns for {len(file.fields)} fields"
        found.damaged(DamageKind.FILE_SCHEMA, detail, reader.path)
        return False
    wrong = []
    for field_id, column in zip(file.fields, file.column_indices, strict=True):
        table_field = schema.by_id(field_id)
        if column < 0 or field_id == TOMBSTONED_FIELD or table_field is None:
            continue
        stored = reader.schema.by_id(stored_ids[column]) if column < len(stored_ids) else None
        if stored is None:
            wrong.append(f"field {field_id} in column {column}, and the file has {len(stored_ids)}")
        elif _kind_of(stored) != _kind_of(table_field):
            wrong.append(f"{table_field.name!r} as {stored.logical_type}, not {table_field.logical_type}")
    if wrong:
        found.damaged(DamageKind.FILE_SCHEMA, f"the file has {'; '.join(wrong[:5])}", reader.path)
    return not wrong


def _kind_of(field: Field) -> str:
    return "struct" if field.is_blob_v2 else field.logical_type


def _columns_in(schema: Schema, file: DataFile) -> Iterator[Field]:
    """Yield the columns of which the file has a field that counts."""
    live = set(file.live_fields)
    return (field for field in schema.fields if not live.isdisjoint(node.id for node in field.walk()))


def _has_blobs(field: Field) -> bool:
    return field.is_blob_v1 or field.holds_blobs_v2


def _read_column(
    part: FragmentReader,
    field: Field,
    rows: range,
    location: ObjectLocation,
    blobs: BlobEnds | None,
    found: FindingCollector,
) -> None:
    """Decode some rows of a column window by window, and check where its `blobs` are."""
    with found.errors_as(DamageKind.FILE_CONTENT, location.uri, column=field.name):
        for _, table in column_windows(part, Schema((field.described(),)), rows.start, rows.stop):
            if blobs is not None:
                blobs.add(table.column(0))
    if blobs is not None:
        blobs.check(found)
