"""Make a dictionary of a page's values: the distinct values, and for each value its position among them.

A mini-block page with a dictionary stores positions as its values, u32, and the entries once, as a block.
"""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.cached_property import cached_property
from lance_ops.core.records import dataclass
from lance_ops.encodings.choosing.stats import FixedStatistics
from lance_ops.encodings.page_values import FixedWidth, VariableWidth, gather_ranges, offsets_of_lengths
from lance_ops.kernels import read_only

__all__ = ["DictionaryValues", "encode_dictionary"]


@dataclass(frozen=True, eq=False)
class DictionaryValues:
    """Value `i` is entry `indices[i]` (u32). Entries stand in the order of their first appearance."""

    entries: FixedWidth | VariableWidth
    indices: FixedWidth

    @cached_property
    def statistics(self) -> FixedStatistics:
        """Statistics of the indices."""
        return FixedStatistics(self.indices)


def encode_dictionary(values: FixedWidth | VariableWidth, most_entries: int) -> DictionaryValues | None:
    """Return the dictionary of some values; None if it would have more than `most_entries`.

    Returns None as well if two different values have the same hash.
    """
    num_values = values.num_values
    firsts, indices = np.empty(most_entries, np.int64), np.empty(num_values, np.uint32)
    positions = FixedWidth(indices.view(np.uint8), 32, num_values)
    if isinstance(values, FixedWidth) and values.bits_per_value == 64:
        num_entries = kernels.number_distinct(read_only(values.as_integers()), firsts, indices)
        if num_entries < 0:
            return None
        entries = values.as_integers()[firsts[:num_entries]]
        return DictionaryValues(FixedWidth(entries.view(np.uint8), 64, num_entries), positions)
    if isinstance(values, VariableWidth):
        offsets = values.offsets.astype(np.int64, copy=False)
    else:
        offsets = np.arange(num_values + 1) * (values.bits_per_value // 8)
    sizes, hashes = np.diff(offsets), np.empty(num_values, np.uint64)
    data = read_only(values.data)
    kernels.hash_values(data, read_only(offsets[:-1]), read_only(sizes), len(data), hashes)
    num_entries = kernels.number_distinct(read_only(hashes), firsts, indices)
    if num_entries < 0:
        return None
    firsts = firsts[:num_entries]
    if not kernels.is_dictionary_of(data, read_only(offsets), read_only(firsts), read_only(indices)):
        return None
    entry_bytes = gather_ranges(values.data, offsets[firsts], sizes[firsts])
    if isinstance(values, VariableWidth):
        entry_offsets = offsets_of_lengths(sizes[firsts], values.bits_per_offset)
        return DictionaryValues(VariableWidth(entry_offsets, entry_bytes), positions)
    return DictionaryValues(FixedWidth(entry_bytes, values.bits_per_value, num_entries), positions)
