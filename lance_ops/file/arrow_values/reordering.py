"""Take rows of a table at given positions: in another order, or several times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import is_text_or_bytes, new_bytes, rows_at
from lance_ops.core.errors import ReadTooLarge
from lance_ops.core.ndarrays import Int64Array
from lance_ops.encodings import VariableWidth, offsets_of_lengths, scatter_ranges
from lance_ops.file.arrow_values.arrays import bitmap_of, validity_of, values_of

__all__ = ["reorder"]


def reorder(table: pa.Table, positions: Int64Array) -> pa.Table:
    """Return the rows at these positions, which are within the table.

    Arrow would first join the chunks of a column, which copies all large values. Here byte strings are copied once,
    from their chunks to their places in the result.
    """
    if not any(_is_chunked(column) for column in table.columns):
        return rows_at(table, positions)
    columns = [
        _reorder_chunks(column, positions) if _is_chunked(column) else rows_at(table.select([at]), positions).column(0)
        for at, column in enumerate(table.columns)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _is_chunked(column: pa.ChunkedArray) -> bool:
    return column.num_chunks > 1 and is_text_or_bytes(column.type)


def _reorder_chunks(column: pa.ChunkedArray, positions: Int64Array) -> pa.Array:
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    chunk_of = np.searchsorted(ends, positions, side="right")
    parts = []
    validity = np.ones(len(positions), np.bool_)
    sizes = np.empty(len(positions), np.int64)
    for number, chunk in enumerate(column.chunks):
        rows = np.flatnonzero(chunk_of == number)
        within = positions[rows] - (ends[number] - len(chunk))
        strings, present = values_of(chunk), validity_of(chunk)
        assert isinstance(strings, VariableWidth)
        starts = strings.offsets[within].astype(np.int64)
        sizes[rows] = strings.offsets[within + 1] - starts
        if present is not None:
            validity[rows] = present[within]
        parts.append((rows, strings.data, starts))
    width = 32 if column.type in (pa.string(), pa.binary()) else 64
    offsets = offsets_of_lengths(sizes, width)
    if offsets.dtype.itemsize * 8 != width:
        raise ReadTooLarge(f"more than 2 GiB in one array of {column.type}: read fewer rows at a time")
    out = new_bytes(int(offsets[-1]))
    for rows, data, starts in parts:
        scatter_ranges(data, starts, sizes[rows], out, offsets[rows].astype(np.int64, copy=False))
    buffers = [None if validity.all() else bitmap_of(validity), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(column.type, len(positions), buffers)
