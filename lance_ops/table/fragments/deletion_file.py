"""Encode and decode deletion files, which hold the deleted offsets of a fragment.

    .arrow   an Arrow IPC file, one batch, one column `row_id: uint32 not null`, buffers compressed with zstd or plain
    .bin     a portable 32-bit Roaring bitmap

A digest of all other bytes (`wire.digests`) may stand before the footer of the Arrow file, or after the bitmap.
Either file holds the whole set of deleted physical offsets; a later deletion writes a new file. A small set is written
as .arrow, a large one as .bin.
"""

from __future__ import annotations

import struct
from dataclasses import KW_ONLY
from enum import StrEnum
from json import dumps, loads
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.arrow import array_of_numbers, numbers_of
from lance_ops.core.errors import CorruptFile, InvalidInput, ReadTooLarge, UnsupportedFeature
from lance_ops.core.file_names import DELETIONS_DIR, deletion_file_name
from lance_ops.core.records import dataclass
from lance_ops.pb import table_pb2
from lance_ops.table.fragments.ipc_batches import ipc_footer_position, read_batches
from lance_ops.table.rows import bitmap_of, decode_bitmap, encode_bitmap, offsets_in
from lance_ops.wire import (
    DIGEST_BLOCK_BYTES,
    ChecksumReport,
    check_digest_block,
    digest_block,
    digest_block_report,
    restore_unknown,
    unknown_fields,
)

__all__ = [
    "MAX_ARROW_ROWS",
    "DeletionFile",
    "DeletionFileType",
    "check_deletion_file",
    "decode_deletion_vector",
    "deletion_checksum_report",
    "deletion_file_name_in",
    "encode_deletion_vector",
]

MAX_ARROW_ROWS = 5000
"""Up to this number of deleted rows the file is an Arrow file, as in the reference."""

_PLAIN, _COMPRESSED = (pa.ipc.IpcWriteOptions(compression=name, use_threads=False) for name in (None, "zstd"))
_COMPRESSED_FROM = 900
"""From this number of offsets on a file is compressed. A smaller file takes one block of most disks anyway."""

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


class DeletionFileType(StrEnum):
    """The two kinds of deletion file, by the reference's names."""

    ARROW_ARRAY = "array"
    BITMAP = "bitmap"

    @property
    def suffix(self) -> str:
        """The suffix of the file's name."""
        return "arrow" if self is DeletionFileType.ARROW_ARRAY else "bin"


_WIRE_TYPES = {
    DeletionFileType.ARROW_ARRAY: table_pb2.DeletionFile.ARROW_ARRAY,
    DeletionFileType.BITMAP: table_pb2.DeletionFile.BITMAP,
}
_BY_WIRE_TYPE = {int(number): kind for kind, number in _WIRE_TYPES.items()}
_SUFFIX_BY_WIRE_TYPE = {int(number): kind.suffix for kind, number in _WIRE_TYPES.items()}


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """The metadata of a deletion file. `num_deleted_rows` is 0 if an old writer did not state it.

    The order of the fields is the reference's. `file_type` may be given by its name, `array` or `bitmap`; another name
    raises `InvalidInput`.
    """

    read_version: int
    id: int
    file_type: DeletionFileType
    num_deleted_rows: int
    base_id: int | None = None
    _: KW_ONLY
    unknown: bytes = b""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "file_type", DeletionFileType(self.file_type))
        except ValueError:
            known = ", ".join(DeletionFileType)
            raise InvalidInput(f"file_type of a deletion file is one of {known}, not {self.file_type!r}") from None

    def name(self, fragment_id: int) -> str:
        """Return the file's name in `_deletions`."""
        return deletion_file_name(fragment_id, self.read_version, self.id, self.file_type.suffix)

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the file's path beneath the dataset's root, or beneath `base_uri`."""
        path = f"{DELETIONS_DIR}/{self.name(fragment_id)}"
        return path if base_uri is None else f"{base_uri.rstrip('/')}/{path}"

    def asdict(self) -> dict[str, Any]:
        """Return the reference's fields, with its names of file types."""
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type.value,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    def json(self) -> str:
        """Return `asdict` as the reference's JSON text."""
        return dumps(self.asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> DeletionFile:
        """Read the text of `json`, of either library; raise `InvalidInput` for any other text."""
        try:
            made = cls(**loads(json))
            if cls.from_pb(made.to_pb(), "JSON") != made:  # the message refuses other types, and takes null for 0
                raise ValueError("a number is null")
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInput(f"not a deletion file in JSON: {error!r}") from error
        return made

    @classmethod
    def from_pb(cls, message: table_pb2.DeletionFile, path: str) -> DeletionFile:
        """Build from the message; raise `UnsupportedFeature` for an unknown file type."""
        return cls(
            file_type=_file_type(message, path),
            read_version=message.read_version,
            id=message.id,
            num_deleted_rows=message.num_deleted_rows,
            base_id=message.base_id if message.HasField("base_id") else None,
            unknown=unknown_fields(message),
        )

    def to_pb(self) -> table_pb2.DeletionFile:
        """Return the message."""
        message = table_pb2.DeletionFile(
            file_type=_WIRE_TYPES[self.file_type],
            read_version=self.read_version,
            id=self.id,
            num_deleted_rows=self.num_deleted_rows,
            base_id=self.base_id,
        )
        restore_unknown(message, self.unknown)
        return message


def deletion_file_name_in(message: table_pb2.DeletionFile, fragment_id: int, path: str) -> str:
    """Return `DeletionFile.name` of the message, without decoding the rest; raise as `DeletionFile.from_pb` does."""
    suffix = _SUFFIX_BY_WIRE_TYPE.get(message.file_type) or _file_type(message, path).suffix
    return deletion_file_name(fragment_id, message.read_version, message.id, suffix)


def _file_type(message: table_pb2.DeletionFile, path: str) -> DeletionFileType:
    file_type = _BY_WIRE_TYPE.get(message.file_type)
    if file_type is None:
        raise UnsupportedFeature(f"deletion file type {message.file_type}", path)
    return file_type


def encode_deletion_vector(vector: BitMap, read_version: int, deletion_id: int) -> tuple[DeletionFile, bytes]:
    """Return the metadata and the bytes of a fragment's whole deletion vector, as of `read_version`."""
    count = len(vector)
    if count > MAX_ARROW_ROWS:
        data = encode_bitmap(vector)
        data += digest_block(data)
        return DeletionFile(read_version, deletion_id, DeletionFileType.BITMAP, count), data
    offsets = array_of_numbers(offsets_in(vector))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA, options=_PLAIN if count < _COMPRESSED_FROM else _COMPRESSED) as writer:
        writer.write_batch(pa.record_batch([offsets], schema=_SCHEMA))
    data = sink.getvalue().to_pybytes()
    footer_at = ipc_footer_position(memoryview(data))
    data = b"".join((data[:footer_at], digest_block(data), data[footer_at:]))
    return DeletionFile(read_version, deletion_id, DeletionFileType.ARROW_ARRAY, count), data


def decode_deletion_vector(
    deletion_file: DeletionFile, data: pa.Buffer | bytes, physical_rows: int, path: str
) -> BitMap:
    """Return the deleted offsets of a fragment with `physical_rows` rows, 0 for an unknown number.

    Raises `CorruptFile` if the bytes do not have their digest, if the number of offsets is not the metadata's, or if an
    offset is beyond the fragment.
    """
    view = memoryview(data)
    position = _digest_position(deletion_file.file_type, view)
    has_digest = check_digest_block(view, position, path)
    if deletion_file.file_type is DeletionFileType.BITMAP:
        vector = decode_bitmap(view[:position] if has_digest else view, path, "deletion vector")
    else:
        vector = bitmap_of(_decode_arrow(data, path))
    expected = deletion_file.num_deleted_rows
    if expected and expected != len(vector):
        raise CorruptFile(path, "deletion vector", f"{len(vector)} rows where the manifest says {expected}")
    if vector and physical_rows and vector.max() >= physical_rows:
        reason = f"row {vector.max()} is deleted, but the fragment has {physical_rows} rows"
        raise CorruptFile(path, "deletion vector", reason)
    return vector


def deletion_checksum_report(file_type: DeletionFileType, data: pa.Buffer | bytes) -> ChecksumReport:
    """Return whether a deletion file carries a digest, and whether its bytes have it."""
    view = memoryview(data)
    return digest_block_report(view, _digest_position(file_type, view))


def check_deletion_file(name: str, data: pa.Buffer | bytes, path: str) -> None:
    """Raise `ChecksumMismatch` if a deletion file, known by its name, does not have the digest that it carries."""
    file_type = next((kind for kind in DeletionFileType if name.endswith(f".{kind.suffix}")), None)
    if file_type is not None:
        view = memoryview(data)
        check_digest_block(view, _digest_position(file_type, view), path)


def _digest_position(file_type: DeletionFileType, data: memoryview) -> int:
    """Return where the digest block begins if the file has one; the position may lie outside of a malformed file."""
    if file_type is DeletionFileType.BITMAP:
        return len(data) - DIGEST_BLOCK_BYTES
    return ipc_footer_position(data) - DIGEST_BLOCK_BYTES


def _decode_arrow(data: pa.Buffer | bytes, path: str) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    try:
        table = read_batches(pa.py_buffer(data))
        table.validate(full=True)
        column = table.column(0).cast(pa.uint32()) if table.num_columns == 1 else None
    except (pa.ArrowException, ReadTooLarge, OSError, ValueError, IndexError, struct.error) as error:
        raise CorruptFile(path, "deletion vector", f"not an Arrow file of row offsets: {error}") from error
    if column is None or column.null_count:
        raise CorruptFile(path, "deletion vector", "not one column of row offsets without nulls")
    offsets: np.ndarray[tuple[int], np.dtype[np.uint32]] = numbers_of(column)
    return offsets
