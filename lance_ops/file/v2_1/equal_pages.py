"""Encode the pages of many short columns together: columns of numbers of one width.

Each call has a fixed cost, which is most of the cost of writing thousands of short columns. The pages are those of
columns that are encoded one by one. A column that needs another kind of page, as one of few distinct values does, is
left to be encoded on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array, UnsignedArray
from lance_ops.encodings import (
    Encoding,
    EqualStatistics,
    FixedWidth,
    choose_equal_levels,
    choose_equal_pages,
    is_stored_plain,
)
from lance_ops.file.container import ALIGNMENT, PADDING
from lance_ops.file.v2_1.layers import Items
from lance_ops.file.v2_1.layouts import PageChoice, encode_equal_mini_blocks
from lance_ops.file.v2_1.levels import encode_levels
from lance_ops.file.v2_1.short_page import plain_parts
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


def encode_equal_pages(values: UnsignedArray, present: BoolArray | None, choice: PageChoice) -> Iterator[EqualPages]:
    """Yield the pages of columns, given as rows of a matrix; columns that must be encoded alone are left out.

    `present` says which values are not null; None if each column is without nulls, otherwise each has some. `choice`
    has no options of a field. There are at least one column and two values, and at most `MAX_EQUAL_VALUES`.
    """
    if present is None and is_stored_plain(values.shape[1], values.shape[1] * values.itemsize):
        yield from _plain_pages(values, choice)
        return
    candidates, chosen = choose_equal_pages(EqualStatistics(values), choice.version)
    levels: Uint16Array | None = None
    of_levels: tuple[Sequence[Encoding | None], Int64Array] = (None,), np.zeros(len(values), np.int64)
    if present is not None:
        chosen[_have_one_value(values, present)] = -1
        levels = (~present).astype(np.uint16)
        of_levels = choose_equal_levels(EqualStatistics(levels), choice.version)
    scheme = encode_levels([Items(values.shape[1], None if present is None else present[0])]).scheme
    for (number, encoding), (level, compression) in product(enumerate(candidates), enumerate(of_levels[0])):
        columns = np.flatnonzero((chosen == number) & (of_levels[1] == level))
        if not len(columns):
            continue
        rows = values[columns]
        fixed = FixedWidth(rows.reshape(-1).view(np.uint8), 8 * values.itemsize, rows.size)
        definition = None if compression is None or levels is None else (compression, levels[columns].reshape(-1))
        description, buffers = encode_equal_mini_blocks(fixed, len(columns), encoding, scheme, choice, definition)
        yield EqualPages(columns, description.SerializeToString(), *_lay_out(buffers, len(columns)))


def _plain_pages(values: UnsignedArray, choice: PageChoice) -> Iterator[EqualPages]:
    """Yield the pages of columns that are stored plain, but not those that are constants."""
    columns = np.arange(len(values))
    if choice.large_chunks:
        columns = np.flatnonzero((values[:, 1:] != values[:, :1]).any(axis=1))
    if not len(columns):
        return
    word, header, padding, description = plain_parts(values.shape[1], 8 * values.itemsize, choice)
    size = values.shape[1] * values.itemsize
    chunk_bytes = len(header) + size + padding
    step = ALIGNMENT + -(-chunk_bytes // ALIGNMENT) * ALIGNMENT
    data = np.full((len(columns), step), PADDING, np.uint8)
    data[:, : len(word)] = np.frombuffer(word, np.uint8)
    chunks = data[:, ALIGNMENT : ALIGNMENT + chunk_bytes]
    chunks[:, : len(header)] = np.frombuffer(header, np.uint8)
    chunks[:, len(header) : len(header) + size] = values[columns].view(np.uint8)
    places = np.empty((len(columns), 2, 2), np.int64)
    places[:, :, 0] = np.arange(len(columns))[:, None] * step + np.array([0, ALIGNMENT])
    places[:, :, 1] = len(word), chunk_bytes
    yield EqualPages(columns, description, data.reshape(-1)[: int(places[-1, -1].sum())], places)


def _have_one_value(values: UnsignedArray, present: BoolArray) -> BoolArray:
    """Return which columns have only one distinct value beside nulls, or none."""
    first = np.take_along_axis(values, present.argmax(axis=1)[:, None], axis=1)
    alike: BoolArray = ((values == first) | ~present).all(axis=1)
    return alike


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
