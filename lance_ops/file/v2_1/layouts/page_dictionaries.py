"""Replace positions in pages' dictionaries by the items: each page has a dictionary of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import ReadTooLarge
from lance_ops.core.ndarrays import BoolArray
from lance_ops.encodings import CorruptValues, FixedWidth, Values, check
from lance_ops.file.arrow_values import array_of, take_items
from lance_ops.file.v2_1.layouts.contract import ToArray

__all__ = ["replace_positions"]

_POSITION_TYPES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def replace_positions(
    values: Values, dictionaries: Sequence[pa.Array], counts: Sequence[int], leaf_type: pa.DataType, stored_bytes: int
) -> ToArray:
    """Return a function that makes the leaf's array: `counts[i]` of the values are positions in dictionary `i`.

    `stored_bytes` is the size of all pages. The function raises `CorruptValues` for a position beyond its dictionary,
    and `ReadTooLarge` if the items are too many for one read. Positions of nulls may be anything.
    """
    if not isinstance(values, FixedWidth) or values.bits_per_value not in _POSITION_TYPES:
        raise CorruptValues("dictionary positions that are no numbers")
    position_type = _POSITION_TYPES[values.bits_per_value]

    def build(validity: BoolArray | None) -> pa.Array:
        if len(dictionaries) > 1:
            positions = array_of(_in_joined(values, dictionaries, counts, validity), pa.uint32(), validity)
            return take_items(pa.concat_arrays(dictionaries), positions, stored_bytes)
        (dictionary,) = dictionaries
        positions = array_of(values, position_type, validity)
        check(_all_below(values, validity, len(dictionary)), "a position beyond the dictionary")
        if pt.is_dictionary(leaf_type):
            keys = positions.cast(leaf_type.index_type)
            return pa.DictionaryArray.from_arrays(keys, dictionary, ordered=leaf_type.ordered)
        return take_items(dictionary, positions, stored_bytes)

    return build


def _in_joined(
    values: FixedWidth, dictionaries: Sequence[pa.Array], counts: Sequence[int], validity: BoolArray | None
) -> FixedWidth:
    """Return the positions in all dictionaries laid end to end; 0 for nulls."""
    check(sum(counts) == values.num_values, f"{values.num_values} positions in pages of {sum(counts)} values")
    sizes = np.array([len(dictionary) for dictionary in dictionaries], np.int64)
    if int(sizes.sum()) >= 1 << 32:
        raise ReadTooLarge("more than 2^32 dictionary items in one read: read fewer rows at a time")
    positions, ends = values.as_integers(), sizes.cumsum()
    if values.bits_per_value < 32:
        positions = positions.astype(np.uint32)
    bounds, bases = (numbers.astype(positions.dtype).repeat(counts) for numbers in (sizes, ends - sizes))
    is_inside = positions < bounds
    joined = positions + bases
    if not is_inside.all():
        check(validity is not None and bool(is_inside[validity].all()), "a position beyond the dictionary")
        joined = np.where(is_inside, joined, 0)
    return FixedWidth(joined.astype(np.uint32, copy=False).view(np.uint8), 32, values.num_values)


def _all_below(values: FixedWidth, validity: BoolArray | None, bound: int) -> bool:
    """Return whether every valid position is below `bound`; positions of nulls may be anything."""
    positions = values.as_integers()
    if not len(positions) or int(positions.max()) < bound:
        return True
    return validity is not None and int(positions[validity].max(initial=0)) < max(bound, 1)
