"""Decide how many values each chunk of a mini-block page holds.

Every chunk but the last holds a power of two values, because the page stores only the logarithm of that number.
"""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, OffsetArray
from lance_ops.encodings.contract import ChunkLimits
from lance_ops.kernels import read_only

__all__ = ["chunk_counts_of_costs", "chunk_counts_of_lengths", "chunk_counts_of_width", "even_chunks"]


def even_chunks(num_values: int, values_per_chunk: int) -> Int64Array:
    """Return the number of values in each chunk when all chunks but the last are full."""
    full, rest = divmod(num_values, values_per_chunk)
    counts = np.full(full + (rest > 0), values_per_chunk, np.int64)
    if rest:
        counts[-1] = rest
    return counts


def chunk_counts_of_width(num_values: int, bits_per_value: int, limits: ChunkLimits) -> Int64Array:
    """Return the number of values in each chunk for values of one width.

    Each chunk holds at least two values, and each but the last takes whole bytes.
    """
    fitting = min(limits.max_values, limits.max_bytes * 8 // max(bits_per_value, 1))
    least = 8 if bits_per_value % 8 else 2
    return even_chunks(num_values, max(least, 1 << max(fitting.bit_length() - 1, 0)))


def chunk_counts_of_lengths(offsets: OffsetArray, overhead_per_value: int, limits: ChunkLimits) -> Int64Array:
    """Return the number of values in each chunk for byte strings with these `offsets`.

    A value costs its length plus `overhead_per_value` bytes; a chunk costs the overhead once more.
    """
    costs = offsets + np.arange(len(offsets), dtype=np.int64) * overhead_per_value
    return chunk_counts_of_costs(costs, overhead_per_value, limits)


def chunk_counts_of_costs(costs: Int64Array, chunk_bytes: int, limits: ChunkLimits) -> Int64Array:
    """Return the number of values in each chunk; values `[i, j)` cost `costs[j] - costs[i]`, a chunk `chunk_bytes`.

    A chunk takes the largest power of two that fits, and at least one value. When all remaining values fit into one
    chunk, they form the last one.
    """
    counts = np.empty(len(costs) - 1, np.int64)
    num_chunks = kernels.cut_chunks(read_only(costs), chunk_bytes, limits.max_bytes, limits.max_values, counts)
    return counts[:num_chunks].copy()
