"""Encode the pages of many short columns together: columns of numbers of one width, without nulls.

Each call has a fixed cost, which is most of the cost of writing thousands of short columns. The pages are those of
columns that are encoded one by one. A column that needs another kind of page, as one of few distinct values does, is
left to be encoded on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import Int64Array, Uint8Array, UnsignedArray
from lance_ops.encodings import EqualStatistics, FixedWidth, choose_equal_pages
from lance_ops.file.container import ALIGNMENT, PADDING
from lance_ops.file.v2_1.layers import Items
from lance_ops.file.v2_1.layouts import PageChoice, encode_equal_mini_blocks
from lance_ops.file.v2_1.levels import encode_levels
from lance_ops.kernels import read_only

__all__ = ["MAX_EQUAL_VALUES", "EqualPages", "encode_equal_pages"]

MAX_EQUAL_VALUES = 1024
"""More values do not fit into one chunk, whatever their width and encoding."""


class EqualPages(NamedTuple):
    """Pages of columns with one description: `columns` says which, `data` has their buffers as they lie in a file.

    `buffers[i]` has the place of each buffer of page `i` in `data`, and its size.
    """

    columns: Int64Array
    description: bytes
    data: Uint8Array
    buffers: Int64Array


def encode_equal_pages(values: UnsignedArray, choice: PageChoice) -> Iterator[EqualPages]:
    """Yield the pages of columns, given as rows of a matrix; columns that must be encoded alone are left out.

    `choice` has no options of a field. There are at least one column and two values, and at most `MAX_EQUAL_VALUES`.
    """
    num_values = values.shape[1]
    levels = encode_levels([Items(num_values, None)])
    candidates, chosen = choose_equal_pages(EqualStatistics(values), choice.version)
    for number, encoding in enumerate(candidates):
        columns = np.flatnonzero(chosen == number)
        if not len(columns):
            continue
        rows = np.ascontiguousarray(values[columns])
        fixed = FixedWidth(rows.reshape(-1).view(np.uint8), 8 * values.itemsize, rows.size)
        description, buffers = encode_equal_mini_blocks(fixed, len(columns), encoding, levels.scheme, choice)
        yield EqualPages(columns, description.SerializeToString(), *_lay_out(buffers, len(columns)))


def _lay_out(buffers: Sequence[tuple[Uint8Array, Int64Array]], num_pages: int) -> tuple[Uint8Array, Int64Array]:
    """Return the buffers of all pages in one array, page after page, and the place and size of each.

    Each element of `buffers` has one buffer of every page, end to end, and their sizes. Each buffer begins at a
    multiple of 64.
    """
    sizes = np.stack([each for _, each in buffers], axis=1)
    padded = -(-sizes // ALIGNMENT) * ALIGNMENT
    places = (padded.cumsum() - padded.reshape(-1)).reshape(sizes.shape)
    data = new_bytes(int(places[-1, -1] + sizes[-1, -1]))
    data[:] = PADDING
    for number, (parts, part_sizes) in enumerate(buffers):
        starts = part_sizes.cumsum() - part_sizes
        ranges = read_only(starts), read_only(part_sizes)
        kernels.copy_ranges(read_only(parts), *ranges, data, read_only(places[:, number]))
    return data, np.stack([places, sizes], axis=2)
