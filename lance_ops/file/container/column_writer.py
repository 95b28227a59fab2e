"""Collect the values of one column until they fill a page, then encode and write the page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa

from lance_ops.file.container.column_metadata import COLUMN_ENCODING_URL, PLAIN_COLUMN, Page, add_page, encode_column
from lance_ops.file.container.encoded_page import EncodedPage
from lance_ops.file.page_reading import Extent
from lance_ops.pb import file2_pb2

__all__ = ["ColumnWriter", "FieldWriter", "HeldBatch", "WriteBytes"]

WriteBytes: TypeAlias = Callable[[memoryview], Extent]

Piece = TypeVar("Piece")


class ColumnWriter(ABC, Generic[Piece]):
    """The pieces of one column that are not written yet, and the metadata of its pages so far."""

    def __init__(self, field_id: int, description_url: str, column_encoding: bytes = PLAIN_COLUMN) -> None:
        self.field_id = field_id
        self._description_url = description_url
        self._column_encoding = column_encoding
        self._metadata = file2_pb2.ColumnMetadata()
        self._pending: list[Piece] = []
        self._num_copied = 0
        self._num_measured = 0
        self._measured_bytes = 0
        self._bound_bytes = 0
        self._first_row = 0

    def add(self, piece: Piece, first_row: int) -> None:
        """Take the next piece; `first_row` is the row of the file that it begins with or is part of."""
        if not self._pending:
            self._first_row = first_row
        self._pending.append(piece)
        self._bound_bytes += self._bound_of(piece)

    def has_pending(self, size_bytes: float) -> bool:
        """Return whether the pending pieces take `size_bytes` or more; they are measured only if their bound does."""
        return self._bound_bytes >= size_bytes and self._measure() >= size_bytes

    def copy_pending(self) -> None:
        """Copy the pending pieces, so that they do not keep the caller's whole batch in memory."""
        self._measure()
        for index in range(self._num_copied, len(self._pending)):
            self._pending[index] = self._copy_of(self._pending[index])
        self._num_copied = len(self._pending)

    def flush(self, write: WriteBytes) -> None:
        """Write the pending pieces as a page."""
        if not self._pending:
            return
        pieces = self._take_pending()
        first_row = self._first_row
        for page in self._encode(pieces):
            buffers = [write(memoryview(buffer)) for buffer in page.buffers]  # type: ignore[arg-type]  # an array is one
            encoding = page.description.SerializeToString()
            add_page(self._metadata, page.length, buffers, first_row, self._description_url, encoding)
            first_row += self._rows_of(page)

    def copy_pages(self, pages: Iterable[Page], copy: Callable[[Extent], Extent], first_row: int = 0) -> None:
        """Add another file's pages, from row `first_row` on; `copy` copies one of their buffers into this file.

        Nothing may be pending.
        """
        for page in pages:
            buffers = map(copy, page.buffers)
            add_page(self._metadata, page.length, buffers, first_row + page.priority, page.type_url, page.encoding)

    def metadata(self) -> bytes:
        """Return the column's metadata message."""
        return encode_column(self._metadata, COLUMN_ENCODING_URL, self._column_encoding)

    def _take_pending(self) -> list[Piece]:
        pieces = self._pending
        self._pending, self._num_copied, self._num_measured = [], 0, 0
        self._measured_bytes = self._bound_bytes = 0
        return pieces

    def _measure(self) -> int:
        """Return the bytes of the pending pieces; each piece is measured once, before it is copied."""
        for piece in self._pending[self._num_measured :]:
            self._measured_bytes += self._size_of(piece)
        self._num_measured = len(self._pending)
        return self._measured_bytes

    @abstractmethod
    def _encode(self, pieces: Sequence[Piece]) -> list[EncodedPage]:
        """Encode the pieces, usually as one page."""

    @abstractmethod
    def _size_of(self, piece: Piece) -> int:
        """Return the bytes of a piece in memory."""

    def _bound_of(self, piece: Piece) -> int:
        """Return an upper bound of `_size_of` that costs less."""
        return self._size_of(piece)

    @abstractmethod
    def _copy_of(self, piece: Piece) -> Piece:
        """Return the same piece in memory of its own."""

    def _rows_of(self, page: EncodedPage) -> int:
        """Return the rows of a page."""
        return page.length


class FieldWriter(ABC):
    """A top-level field being written: the writers of all columns that store it."""

    writers: Sequence[ColumnWriter]  # type: ignore[type-arg]  # the type of pieces differs from column to column

    @abstractmethod
    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        """Split rows among the columns; the array has the field's storage type.

        `write` writes the values of blobs, which lie outside pages.
        """


class HeldBatch(ABC):
    """The only batch of a file so far, while no field writer has it."""

    @abstractmethod
    def write_pages(self, write: WriteBytes) -> list[bytes]:
        """Write the only page of each column; return the metadata messages of the columns, in order.

        Raises `UnsupportedFeature` naming the column.
        """
