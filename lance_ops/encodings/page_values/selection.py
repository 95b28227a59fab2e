"""Pick values by their positions."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array
from lance_ops.encodings.page_values.bits import bits_at
from lance_ops.encodings.page_values.gather import gather_ranges
from lance_ops.encodings.page_values.values import (
    FixedSizeListValues,
    FixedWidth,
    PackedValues,
    Values,
    VariableWidth,
    offsets_of_lengths,
)

__all__ = ["select", "select_fixed"]


def select(values: Values, indices: Int64Array) -> Values:
    """Return the values at these positions."""
    if isinstance(values, FixedWidth):
        return select_fixed(values, indices)
    if isinstance(values, VariableWidth):
        starts = values.offsets[indices].astype(np.int64, copy=False)
        ends = values.offsets[indices + 1].astype(np.int64, copy=False)
        sizes = ends - starts
        inside = sizes.min(initial=0) >= 0 and starts.min(initial=0) >= 0 and ends.max(initial=0) <= len(values.data)
        if not inside:
            raise ValueError("byte strings that end beyond their bytes")
        return VariableWidth(
            offsets_of_lengths(sizes, values.bits_per_offset), gather_ranges(values.data, starts, sizes)
        )
    if isinstance(values, PackedValues):
        return PackedValues(tuple(select(child, indices) for child in values.children))
    dimension = values.dimension
    items = select(values.items, (indices[:, None] * dimension + np.arange(dimension)).reshape(-1))
    assert isinstance(items, FixedWidth | FixedSizeListValues)
    validity = values.validity
    if validity is not None:
        validity = select_fixed(FixedWidth(validity, dimension, values.num_values), indices).data
    return FixedSizeListValues(items, dimension, validity)


def select_fixed(values: FixedWidth, indices: Int64Array) -> FixedWidth:
    """Return the values at these positions."""
    bits = values.bits_per_value
    if bits == 1:
        return FixedWidth(bits_at(values.data, indices), bits, len(indices))
    if bits % 8:
        flags = np.unpackbits(values.data, count=values.num_values * bits, bitorder="little").reshape(-1, bits)
        return FixedWidth(np.packbits(flags[indices].reshape(-1), bitorder="little"), bits, len(indices))
    width = bits // 8
    data = values.data[: values.size_bytes]
    if width in (1, 2, 4, 8):
        taken = data.view(f"<u{width}")[indices].view(np.uint8)
    else:
        taken = data.reshape(-1, width)[indices].reshape(-1) if width else data
    return FixedWidth(taken, bits, len(indices))
