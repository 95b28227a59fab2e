"""Dictionaries: the distinct values of a page, and for each value its position among them.

A mini-block page with a dictionary stores positions as its values, u32, and the entries once, as a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_ops.encodings.stats import arrow_of
from lance_ops.encodings.values import FixedWidth, VariableWidth
from lance_ops.encodings.variable import narrow_offsets

__all__ = ["DictionaryValues", "encode_dictionary"]


@dataclass(frozen=True, eq=False)
class DictionaryValues:
    """Value `i` is entry `indices[i]`; indices are u32, entries in the order of their first appearance."""

    entries: FixedWidth | VariableWidth
    indices: FixedWidth


def encode_dictionary(values: FixedWidth | VariableWidth) -> DictionaryValues:
    """Find the distinct values and where each value is among them."""
    encoded = arrow_of(values).dictionary_encode()
    indices = encoded.indices.to_numpy().astype(np.uint32)
    positions = FixedWidth(indices.view(np.uint8), 32, len(indices))
    return DictionaryValues(_values_of(encoded.dictionary, values), positions)


def _values_of(entries: pa.Array, like: FixedWidth | VariableWidth) -> FixedWidth | VariableWidth:
    if isinstance(like, FixedWidth):
        data = np.frombuffer(entries.buffers()[1], np.uint8)
        return FixedWidth(data[: len(entries) * like.bits_per_value // 8], like.bits_per_value, len(entries))
    _, offset_buffer, data_buffer = entries.buffers()
    dtype = np.int32 if pa.types.is_binary(entries.type) else np.int64
    offsets = np.frombuffer(offset_buffer, dtype, len(entries) + 1)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return VariableWidth(narrow_offsets(offsets.astype(np.int64), like.bits_per_offset), data[: int(offsets[-1])])
