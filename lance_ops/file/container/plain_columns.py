"""Columns of one page, parsed together: tables of thousands of columns have few kinds of them.

Columns of one kind have pages with equal descriptions. They differ in their lengths and in where their buffers are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_ops import kernels
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.file.container.column_metadata import MAX_ROWS, Page, decode_column
from lance_ops.kernels import read_only

__all__ = ["PlainColumns", "decode_plain_columns"]

_MAX_KINDS = 64
_MAX_BUFFERS = 4
_NUM_SPANS = 10


@dataclass(frozen=True, eq=False)
class PlainColumns:
    """Columns and their kinds; `kind_of[i]` is -1 if column `i` has to be parsed on its own, from its `message`.

    `pages` has a page of each kind. `buffers[i]` has the positions and sizes of the buffers of column `i`, as many as
    the page of its kind has.
    """

    data: Uint8Array
    starts: Int64Array
    stops: Int64Array
    kind_of: Int64Array
    pages: Sequence[Page]
    lengths: Int64Array
    buffers: Int64Array

    def message(self, column: int) -> bytes:
        """Return a column's metadata message."""
        return self.data[self.starts[column] : self.stops[column]].tobytes()

    @property
    def size_bytes(self) -> Int64Array:
        """Bytes of all buffers of each column; 0 for a column that has to be parsed on its own."""
        total: Int64Array = self.buffers[:, :, 1].sum(axis=1)
        return total


def decode_plain_columns(
    data: Uint8Array, starts: Int64Array, stops: Int64Array, size_bytes: int, path: str
) -> PlainColumns:
    """Parse column metadata messages, one in each range of `data`. Nothing raises: see `PlainColumns.kind_of`."""
    num_columns = len(starts)
    kinds, spans = np.empty(_MAX_KINDS, np.int64), np.empty(_NUM_SPANS * num_columns, np.int64)
    kind_of, lengths, num_buffers = np.empty((3, num_columns), np.int64)
    buffers = np.zeros((num_columns, _MAX_BUFFERS, 2), np.int64)
    ranges = read_only(starts), read_only(stops)
    outputs = spans, kinds, kind_of, lengths, num_buffers, buffers.reshape(-1)
    num_kinds = kernels.read_columns(read_only(data), *ranges, *outputs)
    buffers[np.arange(_MAX_BUFFERS) >= num_buffers[:, None]] = 0
    inside = (buffers[:, :, 0] <= size_bytes - buffers[:, :, 1]).all(axis=1)
    kind_of[~inside | (lengths > MAX_ROWS)] = -1
    pages = []
    for kind, first in enumerate(kinds[:num_kinds].tolist()):
        message = data[starts[first] : stops[first]].tobytes()
        try:
            pages.append(decode_column(message, size_bytes, path, "column").pages[0])
        except LanceOpsError:  # raised again, with the column's place, when the column is parsed on its own
            pages.append(Page(0, (), 0, "", b""))
            kind_of[kind_of == kind] = -1
    buffers[kind_of < 0] = 0
    return PlainColumns(data, starts, stops, kind_of, pages, lengths, buffers)
