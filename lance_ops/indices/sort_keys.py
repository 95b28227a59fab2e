"""Map values to keys that have the order of an index, and search sorted keys.

Nulls come first. Numbers, decimals, booleans (false first) and temporal values compare as numbers, text and binary by
bytes. Floats follow IEEE 754's total order: NaNs with the sign bit set, -inf, …, -0.0, 0.0, …, inf, other NaNs. So the
two zeros are two values here; a query for one must look for both (see `btree.query_spans`).

The keys are integers for types of at most eight bytes, and bytes for text. Binary and decimal values are their own
keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import (
    array_of_numbers,
    array_of_scalars,
    is_text,
    is_text_or_bytes,
    numbers_of,
    scalar,
)
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.indices.text_order import has_text_order, text_sort_indices
from lance_ops.indices.word_order import nulls_first, order_words, places_of_values

__all__ = [
    "Key",
    "Side",
    "is_sortable",
    "key_of",
    "merged_row_order",
    "rank_in",
    "ranks_in",
    "sort_indices",
    "sort_keys",
]

Key: TypeAlias = Any
"""An int, bytes or a Decimal; all keys of a column have the same Python type."""

Side: TypeAlias = Literal["left", "right"]

_SIGN_BIT = np.uint64(1 << 63)
_SIGNED = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def is_sortable(value_type: pa.DataType) -> bool:
    """Return whether an index can order values of this type."""
    types = pa.types
    return bool(
        types.is_boolean(value_type)
        or types.is_integer(value_type)
        or types.is_floating(value_type)
        or types.is_decimal128(value_type)
        or types.is_decimal256(value_type)
        or (types.is_temporal(value_type) and not types.is_interval(value_type))
        or is_text_or_bytes(value_type)
        or types.is_fixed_size_binary(value_type)
    )


def sort_keys(values: pa.Array) -> pa.Array:
    """Map values to keys; nulls stay null."""
    value_type = values.type
    if pa.types.is_floating(value_type):
        return _total_order(values)
    if pa.types.is_boolean(value_type):
        return values.cast(pa.uint8())
    if pa.types.is_temporal(value_type):
        return values.view(pa.int32() if value_type.bit_width == 32 else pa.int64())
    if is_text(value_type):
        return values.cast(pa.large_binary() if pa.types.is_large_string(value_type) else pa.binary())
    return values


def key_of(value: pa.Scalar) -> Key:
    """Map one value that is not null to its key."""
    key: Key = sort_keys(array_of_scalars([value], value.type))[0].as_py()
    return key


def sort_indices(keys: pa.Array) -> pa.Array:
    """Return the indices that sort the keys, nulls first, as integers of any type; equal keys keep their order."""
    if has_text_order(keys):
        return text_sort_indices(keys)
    if not pa.types.is_integer(keys.type):
        return pc.array_sort_indices(keys, order="ascending", null_placement="at_start")
    if not keys.null_count:
        return array_of_numbers(order_words(_words(keys)))
    return nulls_first(keys, places_of_values(keys), order_words(_words(keys.drop_null())))


def merged_row_order(keys: pa.Array) -> pa.Array:
    """Return what `sort_indices` returns, for keys that are concatenated sorted runs.

    numpy's stable sort of integers finds the runs and merges them, which is faster than to sort them anew.
    """
    if not pa.types.is_integer(keys.type) or keys.null_count:
        return sort_indices(keys)
    return array_of_numbers(np.argsort(numbers_of(keys), kind="stable"))


def rank_in(keys: pa.Array, key: Key | None, side: Side) -> int:
    """Return how many of the sorted keys come before `key`; keys equal to it count for side "right" only.

    A `key` of None is a null, which comes before all values.
    """
    nulls = int(keys.null_count)
    if key is None:
        return nulls if side == "right" else 0
    bisect = bisect_left if side == "left" else bisect_right
    return bisect(range(len(keys)), key, lo=nulls, key=lambda position: keys[position].as_py())


def ranks_in(keys: pa.Array, wanted: Sequence[Key], side: Side) -> list[int]:
    """Return the rank of each of the wanted keys, none of which is None."""
    if not pa.types.is_integer(keys.type):
        return [rank_in(keys, key, side) for key in wanted]
    values = numbers_of(keys.slice(keys.null_count))
    ranks: list[int] = (np.searchsorted(values, np.array(wanted, values.dtype), side) + keys.null_count).tolist()
    return ranks


def _words(keys: pa.Array) -> Uint64Array:
    """Return integers, none of which is null, as a new array of unsigned words in the same order."""
    numbers = numbers_of(keys)
    if pa.types.is_unsigned_integer(keys.type):
        return numbers.astype(np.uint64)
    return numbers.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN_BIT


def _total_order(values: pa.Array) -> pa.Array:
    """Return floats as integers in IEEE 754's total order: flip the bits below the sign where the sign is set."""
    width = values.type.bit_width
    bits = values.view(_SIGNED[width])
    all_but_sign, none = (scalar(mask, bits.type) for mask in ((1 << width - 1) - 1, 0))
    return pc.bit_wise_xor(bits, pc.if_else(pc.less(bits, none), all_but_sign, none))
