"""Sort words: unsigned integers of 64 bits that stand for the values of a column, in their order.

Nulls have no word. They come before all values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops import kernels
from lance_ops.core.arrow import array_of_numbers, truths_of
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint32Array, Uint64Array

__all__ = ["has_equal_neighbour", "nulls_first", "order_words", "places_of_values"]


def order_words(words: Uint64Array) -> Uint32Array:
    """Return the indices that sort the words, of which there are fewer than 2^32; equal words keep their order.

    This sorts `words`, too.
    """
    order = np.empty(len(words), np.uint32)
    kernels.sort_words(words, order)
    return order


def places_of_values(values: pa.Array) -> Int64Array:
    """Return the indices of the values that are not null."""
    places: Int64Array = np.flatnonzero(truths_of(pc.is_valid(values)))
    return places


def nulls_first(values: pa.Array, places: Int64Array, order: Uint32Array) -> pa.Array:
    """Return the indices that sort values and nulls; `order` sorts the values at `places`."""
    return array_of_numbers(np.concatenate((np.flatnonzero(truths_of(pc.is_null(values))), places[order])))


def has_equal_neighbour(equals_next: BoolArray) -> BoolArray:
    """Return which sorted values equal the previous or the next one; `equals_next[i]` is whether i equals i + 1."""
    return np.append(equals_next, False) | np.insert(equals_next, 0, False)
