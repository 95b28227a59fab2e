"""The values of a page in memory: the forms they have, and how bits, byte ranges and chosen values are copied."""

from lance_ops.encodings.page_values.bits import bits_at, bits_of, concat_bits, num_bytes_of_bits
from lance_ops.encodings.page_values.gather import gather_equal, gather_ranges, scatter_ranges, uniform_stride
from lance_ops.encodings.page_values.selection import select, select_fixed
from lance_ops.encodings.page_values.values import (
    FixedSizeListValues,
    FixedWidth,
    PackedValues,
    Values,
    VariableWidth,
    concat_values,
    narrow_offsets,
    offsets_of_lengths,
)

__all__ = [
    "FixedSizeListValues",
    "FixedWidth",
    "PackedValues",
    "Values",
    "VariableWidth",
    "bits_at",
    "bits_of",
    "concat_bits",
    "concat_values",
    "gather_equal",
    "gather_ranges",
    "narrow_offsets",
    "num_bytes_of_bits",
    "offsets_of_lengths",
    "scatter_ranges",
    "select",
    "select_fixed",
    "uniform_stride",
]
