"""The page table of a 0.1 file: where each field's page of each batch is."""

from __future__ import annotations

import numpy as np

from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.file.page_reading import FileSource

__all__ = ["PageTable", "read_page_table"]


@dataclass(frozen=True, eq=False)
class PageTable:
    """`cells[field_id - first_id, batch]` is a page's position and its number of elements."""

    first_id: int
    cells: Int64Array

    def page(self, field_id: int, batch: int) -> tuple[int, int]:
        """Return a page's position and its number of elements."""
        position, length = self.cells[field_id - self.first_id, batch].tolist()
        return position, length


def read_page_table(source: FileSource, position: int, first_id: int, last_id: int, num_batches: int) -> PageTable:
    """Read a page table; raise `CorruptFile` if the table, or one of its pages, lies outside the file."""
    num_ids = last_id - first_id + 1
    stop = position + num_ids * num_batches * 16
    if stop > source.size_bytes:
        raise CorruptFile(source.name, "page table", f"ends at byte {stop} of a file of {source.size_bytes}")
    cells = np.frombuffer(source.read(position, stop), "<i8").reshape(num_ids, num_batches, 2)
    if cells.size and (int(cells.min()) < 0 or int(cells[:, :, 0].max()) > source.size_bytes):
        raise CorruptFile(source.name, "page table", "a page outside of the file")
    return PageTable(first_id, cells)
