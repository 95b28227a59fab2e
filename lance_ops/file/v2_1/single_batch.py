"""Write a file whose rows come in one batch, with one page for each column, in one step.

A writer that collects the rows of a column until they fill a page has a fixed cost, which is most of the cost of a
small append. Here a column costs its page and its metadata. The pages are those that such a writer makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Uint8Array
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import NO_OPTIONS, is_stored_plain
from lance_ops.file import v2_1
from lance_ops.file.arrow_values import validity_of
from lance_ops.file.container import (
    ALIGNMENT,
    PADDING,
    EncodedPage,
    HeldBatch,
    WriteBytes,
    encode_single_page,
    encode_single_pages,
)
from lance_ops.file.leaves import Leaf, leaves_of
from lance_ops.file.v2_1.layouts import PAGE_LAYOUT_URL, PageChoice
from lance_ops.file.v2_1.short_page import NUMBER_WIDTHS, encode_short_page
from lance_ops.file.v2_1.shred import shred

__all__ = ["SingleBatch", "fits_single_batch"]

_LEAST_TOGETHER, _MOST_TOGETHER = 8, 256
"""Fewer columns are encoded one by one; more are encoded in several calls, which bounds the memory."""

_PAD = bytes([PADDING]) * ALIGNMENT


class _EqualKey(NamedTuple):
    """What columns that are encoded together have in common, besides the number of rows."""

    bytes_per_value: int
    has_nulls: bool


@lru_cache(maxsize=64)
def fits_single_batch(schema: Schema, version: FileVersion) -> bool:
    """Return whether a file of a schema can be written in one step; blobs are written before the pages.

    Raises `InvalidInput` for encoding options that are not allowed.
    """
    return not any(leaf.field.is_blob_v1 for leaf, _ in _leaves_to_write(schema, version))


class SingleBatch(HeldBatch):
    """The only batch of a 2.1 or 2.2 file so far."""

    def __init__(self, schema: Schema, version: FileVersion, columns: Sequence[pa.Array]) -> None:
        """Hold columns without blobs; raise `SchemaMismatch` for a null where the schema has none."""
        self._leaves = _leaves_to_write(schema, version)
        self._rows = [rows for pair in zip(schema.fields, columns, strict=True) for rows in shred(*pair)]

    def write_pages(self, write: WriteBytes) -> list[bytes]:
        count = len(self._leaves)
        messages: dict[int, bytes] = {}
        for key, columns in self._equal_columns().items():
            for first in range(0, len(columns), _MOST_TOGETHER):
                messages.update(self._write_equal(columns[first : first + _MOST_TOGETHER], key, write))
        for first in range(0, count, _MOST_TOGETHER) if len(messages) < count else ():
            short: dict[int, EncodedPage] = {}
            for at in range(first, min(first + _MOST_TOGETHER, count)):
                page = None if at in messages else encode_short_page(self._rows[at], self._leaves[at][1])
                if page is not None:
                    short[at] = page
            if short:
                messages.update(zip(short, _write_together(short.values(), write), strict=True))
        for at in range(count) if len(messages) < count else ():
            if at not in messages:
                messages[at] = _write_page(v2_1.encode_leaf_page(*self._leaves[at], self._rows[at]), write)
        return [messages[at] for at in range(count)]

    def _equal_columns(self) -> dict[_EqualKey, list[int]]:
        """Return the groups of at least `_LEAST_TOGETHER` columns that one call encodes, by what they share."""
        equal: dict[_EqualKey, list[int]] = {}
        for at in range(len(self._leaves)) if len(self._leaves) >= _LEAST_TOGETHER else ():
            key = self._equal_key(at)
            if key is not None:
                equal.setdefault(key, []).append(at)
        return {key: columns for key, columns in equal.items() if len(columns) >= _LEAST_TOGETHER}

    def _equal_key(self, at: int) -> _EqualKey | None:
        """Return what a column has in common with others; None if it is not encoded with `_write_equal`.

        That is so if it is no number of at most 8 bytes, lies in a struct or list, has options, has no value or more
        than `MAX_EQUAL_VALUES`, or is a short page with nulls.
        """
        rows, (_, choice) = self._rows[at], self._leaves[at]
        width = NUMBER_WIDTHS.get(rows.values.type.id, 0)
        if not 0 < width <= 8 or rows.layers or choice.options is not NO_OPTIONS:
            return None
        num_values, num_nulls = len(rows.values), rows.values.null_count
        if num_nulls and (num_nulls == num_values or is_stored_plain(num_values, num_values * width)):
            return None
        return _EqualKey(width, num_nulls > 0) if 2 <= num_values <= v2_1.MAX_EQUAL_VALUES else None

    def _write_equal(self, columns: Sequence[int], key: _EqualKey, write: WriteBytes) -> Iterator[tuple[int, bytes]]:
        """Write pages of columns with this key, as far as they can be encoded together; yield their metadata."""
        arrays = [self._rows[at].values for at in columns]
        width, size = key.bytes_per_value, key.bytes_per_value * len(arrays[0])
        parts = [array.buffers()[1].slice(array.offset * width, size) for array in arrays]
        numbers = np.frombuffer(b"".join(parts), f"<u{width}").reshape(len(columns), -1)
        present = None
        if key.has_nulls:
            present = np.stack([validity for validity in map(validity_of, arrays) if validity is not None])
        for pages in v2_1.encode_equal_pages(numbers, present, self._leaves[columns[0]][1]):
            position = write(memoryview(pages.data)).position  # type: ignore[arg-type]  # an array is one
            places = pages.buffers + np.array([position, 0])
            found = encode_single_pages(places, numbers.shape[1], PAGE_LAYOUT_URL, pages.description)
            yield from zip([columns[number] for number in pages.columns.tolist()], found, strict=True)


def _write_page(page: EncodedPage, write: WriteBytes) -> bytes:
    """Write the buffers of a column's only page; return the column's metadata."""
    extents = [write(memoryview(buffer)) for buffer in page.buffers]  # type: ignore[arg-type]  # an array is one
    encoding = page.description.SerializeToString()
    places = [extent.position for extent in extents], [extent.size for extent in extents]
    return encode_single_page(*places, page.length, PAGE_LAYOUT_URL, encoding)


def _write_together(pages: Iterable[EncodedPage], write: WriteBytes) -> list[bytes]:
    """Write the buffers of short pages, each the only one of its column, at once; return the columns' metadata."""
    parts: list[bytes | Uint8Array] = []
    end = 0
    places: list[tuple[list[int], list[int]]] = []
    for page in pages:
        positions, sizes = [], []
        for buffer in page.buffers:
            gap, size = -end % ALIGNMENT, len(buffer)
            parts += (_PAD[:gap], buffer)
            positions.append(end + gap)
            sizes.append(size)
            end += gap + size
        places.append((positions, sizes))
    start = write(memoryview(b"".join(parts))).position  # type: ignore[arg-type]  # an array is one
    return [
        encode_single_page(
            [start + position for position in positions],
            sizes,
            page.length,
            PAGE_LAYOUT_URL,
            page.description.SerializeToString(),
        )
        for page, (positions, sizes) in zip(pages, places, strict=True)
    ]


@lru_cache(maxsize=64)
def _leaves_to_write(schema: Schema, version: FileVersion) -> tuple[tuple[Leaf, PageChoice], ...]:
    """Return each leaf of a schema with what decides its pages besides its values."""
    return tuple([(leaf, PageChoice(version, leaf.options)) for leaf in leaves_of(schema)])
