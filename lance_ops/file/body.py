"""What a file's container takes while it is written, whatever its version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import pyarrow as pa

from lance_ops.file.container import Extent
from lance_ops.store import BytesLike

__all__ = ["FileBody"]


class FileBody(ABC):
    """Everything of a file from its first byte to its footer; whoever made the sink closes it."""

    @abstractmethod
    def add(self, columns: Sequence[pa.Array], num_rows: int) -> None:
        """Take rows; each column has its field's storage type."""

    @abstractmethod
    def add_global_buffer(self, data: BytesLike) -> int:
        """Write some bytes for the file as a whole and return their number, counted from 1."""

    @abstractmethod
    def write_buffer(self, data: BytesLike) -> Extent:
        """Write some bytes that a column's values tell the place of."""

    @abstractmethod
    def finish(self, metadata: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Write the rest. Return the fields that a manifest lists for the file, and the column of each."""
