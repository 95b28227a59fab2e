"""The contract of a file body: what each file version does to write a file, from its first byte to its footer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.file.container import Column
from lance_ops.file.page_reading import Extent
from lance_ops.store import BytesLike

__all__ = ["FileBody"]


class FileBody(ABC):
    """The content of a file while it is written; the code that opened the sink closes it."""

    @abstractmethod
    def add(self, columns: Sequence[pa.Array], num_rows: int) -> None:
        """Append rows; each column has its field's storage type."""

    def copy_columns(self, field_index: int, columns: Sequence[Column], read: Callable[[Extent], BytesLike]) -> None:
        """Copy all rows of a field from another file, whose buffers `read` reads; `add` then takes no such column."""
        raise UnsupportedFeature("copied columns in this file version")

    def append_rows(
        self, columns: Sequence[Sequence[Column]], num_rows: int, read: Callable[[Extent], BytesLike]
    ) -> None:
        """Append all rows of another file by its pages: the columns of each field, whose buffers `read` reads."""
        raise UnsupportedFeature("appended pages in this file version")

    @abstractmethod
    def add_global_buffer(self, data: BytesLike) -> int:
        """Write bytes that belong to the file as a whole and return their number, counted from 1."""

    @abstractmethod
    def write_buffer(self, data: BytesLike) -> Extent:
        """Write bytes that a column's values refer to by position, and return where they are."""

    @abstractmethod
    def finish(self, metadata: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Write the rest. Return the field ids that a manifest lists for the file, and the column of each."""
