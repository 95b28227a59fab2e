"""One column on its way to a 2.x file: pieces collect until they make a page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa

from lance_ops.file.container import Extent, Page, add_page, encode_column
from lance_ops.file.encoded import EncodedPage
from lance_ops.pb import file2_pb2

__all__ = ["PLAIN_COLUMN", "ColumnWriter", "RootWriter", "WriteBytes"]

_COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"

PLAIN_COLUMN = b"\n\x00"
"""A column encoding whose one field, an empty message, says that there is nothing to say."""

WriteBytes: TypeAlias = Callable[[memoryview], Extent]

Piece = TypeVar("Piece")


class ColumnWriter(ABC, Generic[Piece]):
    """What makes the next page of one column, and the metadata of its pages so far."""

    def __init__(self, field_id: int, description_url: str, column_encoding: bytes = PLAIN_COLUMN) -> None:
        self.field_id = field_id
        self._description_url = description_url
        self._column_encoding = column_encoding
        self._metadata = file2_pb2.ColumnMetadata()
        self._pending: list[Piece] = []
        self._num_own = 0
        self._num_measured = 0
        self._measured_bytes = 0
        self._most_bytes = 0
        self._first_row = 0

    def add(self, piece: Piece, first_row: int) -> None:
        """Take rows that come next; `first_row` is the file's row that they begin with or are part of."""
        if not self._pending:
            self._first_row = first_row
        self._pending.append(piece)
        self._most_bytes += self._most_of(piece)

    def holds(self, size_bytes: float) -> bool:
        """Return whether what is pending takes so many bytes; where it cannot, nothing is measured."""
        return self._most_bytes >= size_bytes and self._measure() >= size_bytes

    def let_go(self) -> None:
        """Copy what is pending, so that it does not hold the whole batch it came with."""
        self._measure()
        for index in range(self._num_own, len(self._pending)):
            self._pending[index] = self._copy_of(self._pending[index])
        self._num_own = len(self._pending)

    def flush(self, write: WriteBytes) -> None:
        """Write what is pending as a page."""
        if not self._pending:
            return
        pieces = self._pending
        self._pending, self._num_own, self._num_measured = [], 0, 0
        self._measured_bytes = self._most_bytes = 0
        first_row = self._first_row
        for page in self._encode(pieces, write):
            buffers = [write(memoryview(buffer)) for buffer in page.buffers]  # type: ignore[arg-type]  # an array is one
            encoding = page.description.SerializeToString()
            add_page(self._metadata, page.length, buffers, first_row, self._description_url, encoding)
            first_row += self._rows_of(page)

    def copy_pages(self, pages: Iterable[Page], copy: Callable[[Extent], Extent]) -> None:
        """Begin with pages of another file; `copy` puts one of their buffers into this one."""
        for page in pages:
            buffers = map(copy, page.buffers)
            add_page(self._metadata, page.length, buffers, page.priority, page.type_url, page.encoding)

    def metadata(self) -> bytes:
        """Return the column's metadata message."""
        return encode_column(self._metadata, _COLUMN_ENCODING_URL, self._column_encoding)

    def _measure(self) -> int:
        """Return the bytes of what is pending; each piece is looked at once, before it is copied."""
        for piece in self._pending[self._num_measured :]:
            self._measured_bytes += self._size_of(piece)
        self._num_measured = len(self._pending)
        return self._measured_bytes

    @abstractmethod
    def _encode(self, pieces: Sequence[Piece], write: WriteBytes) -> list[EncodedPage]:
        """Make pages, one as a rule; `write` puts bytes that stand outside of pages into the file."""

    @abstractmethod
    def _size_of(self, piece: Piece) -> int:
        """Return the bytes of a piece in memory."""

    def _most_of(self, piece: Piece) -> int:
        """Return a number of bytes that a piece does not take more than, known at once."""
        return self._size_of(piece)

    @abstractmethod
    def _copy_of(self, piece: Piece) -> Piece:
        """Return the same rows in memory of their own."""

    def _rows_of(self, page: EncodedPage) -> int:
        """Return the rows of a page."""
        return page.length


class RootWriter(ABC):
    """A top-level column: all the columns below it."""

    writers: Sequence[ColumnWriter]  # type: ignore[type-arg]  # of whatever pieces

    @abstractmethod
    def add(self, array: pa.Array, first_row: int) -> None:
        """Take rows apart for the columns below; the array has the field's storage type."""
