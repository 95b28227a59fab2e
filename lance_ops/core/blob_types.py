"""The Arrow types, metadata keys and size thresholds of blob columns.

A page of a blob column holds the positions of the values, which are too large for the page.

There are two kinds. A binary column with the metadata `lance-encoding:blob` = `true` keeps its bytes in the data file
(files up to 2.1, and 2.2 files outside a table). In 2.2 tables it becomes a struct marked `lance.blob.v2`: the user
sees bytes or a URI, and the file holds a descriptor:

    kind u8   position u64   size u64   blob_id u32   blob_uri string

    0 inline      `size` bytes at `position` in the data file itself
    1 packed      `size` bytes at `position` in the sidecar `blob_id`, with others
    2 dedicated   all of the sidecar `blob_id`
    3 external    all of the object `blob_uri`, or `size` bytes at `position` in it if `size` is not 0
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import EXTENSION_NAME, child_fields, convert_leaves, with_child_fields
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.records import dataclass

__all__ = [
    "BLOB_KEY",
    "BLOB_V2",
    "BLOB_VALUES",
    "DESCRIPTOR",
    "DESCRIPTOR_METADATA",
    "POSITION_AND_SIZE",
    "BlobKind",
    "BlobThresholds",
    "blobs_as_v2",
    "check_blob_v2",
    "is_blob_v1",
    "is_blob_v2",
    "values_of_blobs",
]

BLOB_V2 = "lance.blob.v2"
BLOB_KEY = "lance-encoding:blob"

POSITION_AND_SIZE = pa.struct([pa.field("position", pa.uint64()), pa.field("size", pa.uint64())])
"""What a user sees of a blob of the first kind: the position and size of its bytes in the data file."""

DESCRIPTOR = pa.struct(
    [
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("position", pa.uint64(), nullable=False),
        pa.field("size", pa.uint64(), nullable=False),
        pa.field("blob_id", pa.uint32(), nullable=False),
        pa.field("blob_uri", pa.string(), nullable=False),
    ]
)
DESCRIPTOR_METADATA = {BLOB_KEY: "true", "lance-encoding:packed": "true"}

BLOB_VALUES = pa.struct(
    [
        pa.field("data", pa.large_binary()),
        pa.field("uri", pa.string()),
        pa.field("position", pa.uint64()),
        pa.field("size", pa.uint64()),
    ]
)


class BlobKind(IntEnum):
    """Where the bytes of a `lance.blob.v2` value are."""

    INLINE = 0
    PACKED = 1
    DEDICATED = 2
    EXTERNAL = 3
    MANAGED = 4
    """Beneath a base path, shared by data files. No release writes it, and this library does not read it."""


@dataclass(frozen=True)
class BlobThresholds:
    """The sizes in bytes by which a writer chooses a blob's kind; it compares with `dedicated_size` first."""

    inline_size: int = 64 * 1024
    """A blob up to this size is inline."""
    dedicated_size: int = 4 * 1024 * 1024
    """A blob above this size has a sidecar of its own."""
    pack_file_size: int = 1024 * 1024 * 1024
    """A packed sidecar does not grow above this size."""

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> BlobThresholds:
        """Read a field's `lance-encoding:blob-*-threshold`; raise `InvalidInput` for a value that is not a size."""
        names = ("inline_size", "dedicated_size", "pack_file_size")
        given = {name: metadata.get(f"{BLOB_KEY}-{name.replace('_', '-')}-threshold") for name in names}
        for name, text in given.items():
            if text is not None and (not text.isdecimal() or (name != "inline_size" and not int(text))):
                raise InvalidInput(f"{BLOB_KEY}-{name.replace('_', '-')}-threshold is {text!r}: it is a size in bytes")
        return cls(**{name: int(text) for name, text in given.items() if text is not None})


def is_blob_v2(field: pa.Field) -> bool:
    """Return whether a field is marked `lance.blob.v2`, as an extension type or by its metadata."""
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == BLOB_V2)
    return (field.metadata or {}).get(EXTENSION_NAME.encode()) == BLOB_V2.encode()


def is_blob_v1(field: pa.Field) -> bool:
    """Return whether a field is binary and its metadata marks it as a blob column."""
    is_binary = pt.is_binary(field.type) or pt.is_large_binary(field.type)
    return bool(is_binary and (field.metadata or {}).get(BLOB_KEY.encode(), b"").lower() == b"true")


def check_blob_v2(storage: pa.DataType, name: str) -> None:
    """Raise `SchemaMismatch` unless a type is a struct of data and uri, or of data, uri, position and size."""
    found = [(child.name, child.type) for child in storage] if pt.is_struct(storage) else []
    if len(found) not in (2, 4) or found != [(child.name, child.type) for child in BLOB_VALUES][: len(found)]:
        raise SchemaMismatch(f"column {name!r} is marked {BLOB_V2} and is {storage}, not {BLOB_VALUES}")


def blobs_as_v2(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a 2.2 table for data of this schema: binary blob columns become `lance.blob.v2`."""
    return pa.schema([_as_v2(field) for field in schema], schema.metadata)


def values_of_blobs(array: pa.Array, given: pa.Field, field: pa.Field) -> pa.Array:
    """Return data for the blob column `field`: binary values and shorter structs become `BLOB_VALUES`.

    Raises `SchemaMismatch` for any other type in place of a blob.
    """
    return convert_leaves(array, given, field, is_blob_v2, _as_values)


def _as_values(array: pa.Array, given: pa.Field, _: pa.Field) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_null(array.type):
        return pa.nulls(len(array), BLOB_VALUES)
    absent = array.is_null()
    if pt.is_binary(array.type) or pt.is_large_binary(array.type) or pt.is_binary_view(array.type):
        children = [array.cast(pa.large_binary())]
    elif is_blob_v2(given):
        check_blob_v2(array.type, given.name)
        children = [array.field(index) for index in range(array.type.num_fields)]
    else:
        raise SchemaMismatch(f"column {given.name!r} holds blobs in the table and {array.type} in the data")
    children += [pa.nulls(len(array), child.type) for child in list(BLOB_VALUES)[len(children) :]]
    return pa.StructArray.from_arrays(children, fields=list(BLOB_VALUES), mask=absent)


def _as_v2(field: pa.Field) -> pa.Field:
    if is_blob_v1(field):
        kept = {key: value for key, value in field.metadata.items() if key != BLOB_KEY.encode()}
        metadata = kept | {EXTENSION_NAME.encode(): BLOB_V2.encode()}
        return pa.field(field.name, pa.struct(list(BLOB_VALUES)[:2]), field.nullable, metadata)
    children = child_fields(field.type)
    below = [_as_v2(child) for child in children]
    return field if below == children else field.with_type(with_child_fields(field.type, below))
