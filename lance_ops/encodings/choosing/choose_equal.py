"""Decide how several pages of equal length are encoded, as `choose` decides it of each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.choosing.choose import MIN_DICTIONARY_VALUES, MOST_OF_FASTER
from lance_ops.encodings.choosing.stats import EqualStatistics
from lance_ops.encodings.compressive import (
    FlatEncoding,
    InlineBitpackingEncoding,
    OutOfLineBitpackingEncoding,
    RleEncoding,
)
from lance_ops.encodings.contract import Encoding

__all__ = ["choose_equal_levels", "choose_equal_pages"]


def choose_equal_pages(
    statistics: EqualStatistics, version: FileVersion
) -> tuple[Sequence[FlatEncoding | InlineBitpackingEncoding], Int64Array]:
    """Choose the encodings of several pages of integers without options; return them, and which one each page has.

    The number is -1 for a page that needs more than a choice between these encodings: one of runs, one of a single
    value, and one that may have a dictionary. The choice is that of `choose_dictionary` and `choose_mini_block`.
    """
    bits, num_values = statistics.bits_per_value, statistics.values.shape[1]
    chosen = _smallest_of_each(statistics.flat_bytes, statistics.bitpacked_bytes, statistics.rle_bytes)
    chosen[(chosen == 2) | (statistics.num_runs == 1)] = -1
    if bits == 64 and num_values >= MIN_DICTIONARY_VALUES and version >= FileVersion.V2_2:
        chosen[statistics.may_repeat] = -1
    return (FlatEncoding(bits), InlineBitpackingEncoding(bits)), chosen


def choose_equal_levels(statistics: EqualStatistics, version: FileVersion) -> tuple[Sequence[Encoding], Int64Array]:
    """Choose the encodings of the levels of several pages, each 0 or 1 and in one block, as `choose_levels` does.

    Returns the encodings, and which one each page has.
    """
    flat, packed = FlatEncoding(statistics.bits_per_value), OutOfLineBitpackingEncoding(statistics.bits_per_value, 1)
    sizes: list[int | Int64Array] = [packed.size_of_blocks(np.array([statistics.values.shape[1]]))]
    if version >= FileVersion.V2_2:
        sizes.append(statistics.rle_bytes + 8)
    chosen = _smallest_of_each(np.full(len(statistics.values), statistics.flat_bytes), *sizes)
    return (flat, packed, RleEncoding(statistics.bits_per_value)), chosen


def _smallest_of_each(first: int | Int64Array, *sizes: int | Int64Array) -> Int64Array:
    """Return for each page which of several sizes `choose` takes; one of them differs from page to page."""
    least = np.array(np.broadcast_arrays(first, *sizes)[0], np.float64)
    best = np.zeros(len(least), np.int64)
    for number, size in enumerate(sizes, start=1):
        smaller = size < least * MOST_OF_FASTER
        best[smaller] = number
        least = np.where(smaller, size, least)
    return best
