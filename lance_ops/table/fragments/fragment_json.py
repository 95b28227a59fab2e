"""Convert a fragment to and from the reference's JSON form, in which tasks pass fragments between processes.

    {id, physical_rows, overlays: [],
     files: [{path, fields, column_indices, file_major_version, file_minor_version, file_size_bytes, base_id}],
     deletion_file: {id, read_version, file_type: "array" | "bitmap", num_deleted_rows, base_id} | null,
     row_id_meta: {"Inline": [bytes]} | {"External": {path, offset, size}} | null,
     created_at_version_meta, last_updated_at_version_meta: the same, "inline" and "external" in small letters}

A fragment with anything else in its message is refused, so that nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.pb import table_pb2
from lance_ops.table.fragments.row_metadata import ExternalFile, RowDatasetVersionMeta, RowIdMeta
from lance_ops.wire import unknown_fields

__all__ = ["fragment_from_json", "fragment_to_json"]

_FILE_TYPES = {table_pb2.DeletionFile.ARROW_ARRAY: "array", table_pb2.DeletionFile.BITMAP: "bitmap"}

_SEQUENCES: dict[str, tuple[str, type[RowIdMeta | RowDatasetVersionMeta]]] = {
    "row_id_meta": ("row_ids", RowIdMeta),
    "created_at_version_meta": ("created_at_versions", RowDatasetVersionMeta),
    "last_updated_at_version_meta": ("last_updated_at_versions", RowDatasetVersionMeta),
}
"""For each sequence in JSON: its name in the message, and its kind."""


def fragment_to_json(message: table_pb2.DataFragment) -> dict[str, Any]:
    """Return a fragment as JSON values; raise `UnsupportedFeature` if they cannot express all of it."""
    parts: list[Message] = [message, *message.files, message.deletion_file]
    if message.overlays or any(map(unknown_fields, parts)):
        raise UnsupportedFeature("a fragment with overlays, or parts that this release does not know, as JSON")
    deletion = message.deletion_file
    return {
        "id": message.id,
        "files": [_file_to_json(file) for file in message.files],
        "overlays": [],
        "physical_rows": message.physical_rows,
        "deletion_file": {
            "read_version": deletion.read_version,
            "id": deletion.id,
            "file_type": _FILE_TYPES[deletion.file_type],
            "num_deleted_rows": deletion.num_deleted_rows,
            "base_id": deletion.base_id if deletion.HasField("base_id") else None,
        }
        if message.HasField("deletion_file")
        else None,
        **{name: _sequence_to_json(message, *spelled) for name, spelled in _SEQUENCES.items()},
    }


def fragment_from_json(text: str) -> table_pb2.DataFragment:
    """Read the JSON text of `fragment_to_json` or of the reference; raise `InvalidInput` for any other text."""
    try:
        return _fragment(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"not a fragment in JSON: {error!r}") from error


def _fragment(values: Mapping[str, Any]) -> table_pb2.DataFragment:
    if values.get("overlays"):
        raise UnsupportedFeature("a fragment with overlays")
    message = table_pb2.DataFragment(
        id=values["id"],
        physical_rows=values["physical_rows"] or 0,
        files=[
            table_pb2.DataFile(**{key: value for key, value in file.items() if value is not None})
            for file in values["files"]
        ],
    )
    deletion = values.get("deletion_file")
    if deletion is not None:
        kinds = {name: number for number, name in _FILE_TYPES.items()}
        message.deletion_file.CopyFrom(
            table_pb2.DeletionFile(**{**deletion, "file_type": kinds[deletion["file_type"]]})
        )
    for name, (field, kind) in _SEQUENCES.items():
        if values.get(name) is not None:
            stored = kind.from_values(values[name]).stored
            if isinstance(stored, bytes):
                setattr(message, f"inline_{field}", stored)
            else:
                getattr(message, f"external_{field}").CopyFrom(stored.to_pb())
    return message


def _file_to_json(file: table_pb2.DataFile) -> dict[str, Any]:
    return {
        "fields": list(file.fields),
        "column_indices": list(file.column_indices),
        "file_major_version": file.file_major_version,
        "file_minor_version": file.file_minor_version,
        "file_size_bytes": file.file_size_bytes or None,
        "base_id": file.base_id if file.HasField("base_id") else None,
        "path": file.path,
    }


def _sequence_to_json(
    message: table_pb2.DataFragment, field: str, kind: type[RowIdMeta | RowDatasetVersionMeta]
) -> dict[str, Any] | None:
    if message.HasField(f"inline_{field}"):
        return kind(getattr(message, f"inline_{field}")).asdict()
    if message.HasField(f"external_{field}"):
        return kind(ExternalFile.from_pb(getattr(message, f"external_{field}"))).asdict()
    return None
