"""Make Arrow arrays and fields for columns of `lance.blob.v2`, under the reference's names.

The extension type is not registered with Arrow: a process may register only one type of a name, and the reference may
have done so. The type marks a column without being registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO

import pyarrow as pa

from lance_ops.core.blob_types import BLOB_KEY, BLOB_V2, BLOB_VALUES, check_blob_v2
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = ["Blob", "BlobArray", "BlobColumn", "BlobType", "blob_array", "blob_field"]


@dataclass(frozen=True)
class Blob:
    """A blob to write: bytes, or the URI of another object, or `size` bytes of that object from `position` on."""

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.uri is None):
            raise InvalidInput("a blob has either data or a uri; for a null write None")
        if self.uri == "":
            raise InvalidInput("the uri of a blob is empty")
        if (self.position is None) != (self.size is None) or (self.position is not None and self.uri is None):
            raise InvalidInput("position and size of a blob go together, with a uri")
        if self.position is not None and self.size is not None and (self.position < 0 or self.size < 1):
            raise InvalidInput(f"{self.size} bytes at {self.position} of {self.uri}")

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """Return a blob of these bytes."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """Return a blob of another object's bytes."""
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """Return a blob of no bytes, which is not null."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """The Arrow type of a column of blobs to write."""

    def __init__(self, *, storage_type: pa.DataType = BLOB_VALUES) -> None:
        check_blob_v2(storage_type, "blob")
        super().__init__(storage_type, BLOB_V2)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BlobType:
        return cls(storage_type=storage_type)

    def __arrow_ext_class__(self) -> type[BlobArray]:
        return BlobArray

    def __reduce__(self) -> tuple[object, tuple[pa.DataType, bytes]]:
        return BlobType.__arrow_ext_deserialize__, (self.storage_type, b"")


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]  # pyarrow ships no types
    """Blobs to write; make one with `blob_array`."""

    @classmethod
    def from_pylist(cls, values: Sequence[Blob | bytes | bytearray | memoryview | str | None]) -> BlobArray:
        """Return an array of blobs: bytes, a URI as text, a `Blob`, or None."""
        blobs = [None if value is None else _blob(value) for value in values]
        columns = [pa.array([getattr(blob, field.name, None) for blob in blobs], field.type) for field in BLOB_VALUES]
        gone = pa.array([blob is None for blob in blobs], pa.bool_())
        storage = pa.StructArray.from_arrays(columns, fields=list(BLOB_VALUES), mask=gone)
        made: BlobArray = pa.ExtensionArray.from_storage(BlobType(), storage)
        return made


class BlobColumn:
    """A binary column that was read, as file objects: a loop gives one `BytesIO` for each value, and None for a null.

    `LanceDataset.take_blobs` reads large values of blob columns from their files instead.
    """

    def __init__(self, blob_column: pa.Array | pa.ChunkedArray) -> None:
        """Take an array of `binary` or `large_binary`; raise `InvalidInput` for anything else."""
        if not isinstance(blob_column, pa.Array | pa.ChunkedArray):
            raise InvalidInput(f"blob_column must be an Arrow array, not a {type(blob_column).__name__}")
        if not (pa.types.is_binary(blob_column.type) or pa.types.is_large_binary(blob_column.type)):
            raise InvalidInput(f"blob_column must hold binary values, not {blob_column.type}")
        self.blob_column = blob_column

    def __iter__(self) -> Iterator[BytesIO | None]:
        for value in self.blob_column:
            yield BytesIO(value.as_py()) if value.is_valid else None


def blob_array(values: Sequence[Blob | bytes | bytearray | memoryview | str | None]) -> BlobArray:
    """Return an array of blobs: bytes, a URI as text, a `Blob`, or None. Raises `InvalidInput` for anything else."""
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """Return the field of a column of blobs.

    A blob above the first threshold is stored with others in a file beside the data file, and a blob above the second
    in a file of its own. The third threshold limits files of several blobs. Raises `InvalidInput` for an invalid size.
    """
    sizes = {
        "inline-size": inline_size_threshold,
        "dedicated-size": dedicated_size_threshold,
        "pack-file-size": pack_file_size_threshold,
    }
    for what, size in sizes.items():
        least = 0 if what == "inline-size" else 1
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < least):
            raise InvalidInput(f"{what.replace('-', '_')}_threshold must be a number of at least {least}, not {size!r}")
    metadata = {f"{BLOB_KEY}-{what}-threshold": str(size) for what, size in sizes.items() if size is not None}
    return pa.field(name, BlobType(), nullable, metadata or None)


def _blob(value: Blob | bytes | bytearray | memoryview | str) -> Blob:
    match value:
        case Blob():
            return value
        case str():
            return Blob.from_uri(value)
        case bytes() | bytearray() | memoryview():
            return Blob.from_bytes(value)
        case _:
            raise InvalidInput(f"a blob is bytes, a URI as text, a Blob or None, not a {type(value).__name__}")
