"""Make the manifest entry of a data file that no version names: its fields, columns, version and size."""

from __future__ import annotations

from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader
from lance_ops.snapshot import Snapshot
from lance_ops.store import check_path
from lance_ops.table import DataFile, Fragment

__all__ = ["describe_data_file", "describe_fragment"]


def describe_data_file(snapshot: Snapshot, path: str, base_id: int | None = None) -> DataFile:
    """Return the manifest entry of a file in the data directory; its columns are matched to fields by name.

    Raises `UnsafePath` for a path that leaves the directory, `InvalidInput` for a base that is not declared,
    `ObjectNotFound`, `SchemaMismatch` naming a column that the table does not have, and `UnsupportedFeature` for a 0.1
    file.
    """
    return _data_file(snapshot, _open(snapshot, path, base_id), path, base_id)


def describe_fragment(snapshot: Snapshot, path: str, fragment_id: int) -> Fragment:
    """Return the fragment of one file with all of the table's columns; errors are those of `describe_data_file`."""
    reader = _open(snapshot, path, None)
    file = _data_file(snapshot, reader, path, None)
    missing = _first_missing(snapshot.schema.fields, reader.schema.fields)
    if missing is not None:
        raise SchemaMismatch(f"{path} has no column {missing!r}, which the table has")
    return Fragment(fragment_id, (file,), reader.num_rows)


def _open(snapshot: Snapshot, path: str, base_id: int | None) -> FileReader:
    check_path(path)
    if base_id is not None and base_id not in {base.id for base in snapshot.manifest.base_paths}:
        raise InvalidInput(f"{snapshot.uri} declares no base path {base_id}")
    location = snapshot.file_locations.data_file(base_id, path)
    reader = FileReader(location.store, location.path)
    if reader.version is FileVersion.V0_1:
        raise UnsupportedFeature("describing a data file of version 0.1, which lists no columns", location.uri)
    return reader


def _data_file(snapshot: Snapshot, reader: FileReader, path: str, base_id: int | None) -> DataFile:
    _check_fields(reader.schema.fields, snapshot.schema.fields, path)
    paths = map(reader.schema.path_of, reader.field_ids)
    fields = tuple(snapshot.schema.field(name).id for name in paths)
    major, minor = reader.version.data_file
    return DataFile(path, fields, tuple(range(len(fields))), major, minor, reader.size_bytes, base_id)


def _check_fields(found: tuple[Field, ...], expected: tuple[Field, ...], path: str) -> None:
    by_name = {field.name: field for field in expected}
    for field in found:
        wanted = by_name.get(field.name)
        if wanted is None:
            raise SchemaMismatch(f"{path} has a column {field.name!r}, which the table does not have")
        if wanted.logical_type != field.logical_type:
            raise SchemaMismatch(f"column {field.name!r} of {path} is {field.logical_type}, not {wanted.logical_type}")
        _check_fields(field.children, wanted.children, path)


def _first_missing(expected: tuple[Field, ...], found: tuple[Field, ...]) -> str | None:
    by_name = {field.name: field for field in found}
    for field in expected:
        there = by_name.get(field.name)
        within = None if there is None else _first_missing(field.children, there.children)
        if there is None or within is not None:
            return field.name if within is None else f"{field.name}.{within}"
    return None
