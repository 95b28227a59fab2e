"""Where a chunk ends, for values that cost different numbers of bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel

__all__ = ["cut_chunks"]


@kernel
def cut_chunks(
    costs: NDArray[np.int64], chunk_bytes: int, max_bytes: int, max_values: int, counts: NDArray[np.int64]
) -> int:
    """Cut values into chunks, write how many values each has, and return how many chunks there are.

    Values `[i, j)` cost `costs[j] - costs[i]`, every chunk `chunk_bytes` more. A chunk takes the largest power of two
    that fits, one value at least; the values that are left go into one chunk where they fit. `counts` has room for as
    many chunks as there are values.
    """
    num_values, start, num_chunks = len(costs) - 1, 0, 0
    while start < num_values:
        most = min(max_values, num_values - start)
        room = costs[start] + max_bytes - chunk_bytes
        count = 1
        if costs[start + most] <= room:
            count = most
        else:
            while 2 * count <= most and costs[start + 2 * count] <= room:
                count *= 2
        if start + count < num_values:
            power = 1
            while 2 * power <= count:
                power *= 2
            count = power
        counts[num_chunks] = count
        num_chunks += 1
        start += count
    return num_chunks
