"""Count the runs of a page's integers and find which bits they use, in one pass."""

from __future__ import annotations

from lance_ops.core.ndarrays import UnsignedArray
from lance_ops.kernels.compile import kernel

__all__ = ["measure_integers"]


@kernel
def measure_integers(integers: UnsignedArray, block_values: int, unions: UnsignedArray) -> int:
    """Write the union of the bits of each block's values; return how many runs of equal values there are in all.

    Blocks have `block_values` values, the last one possibly fewer; `unions` has an entry for each block.
    """
    if len(integers) == 0:
        return 0
    num_changes = 0
    for block in range(len(unions)):
        start = block * block_values
        values = integers[start : start + block_values]
        union = values[0]
        for i in range(len(values)):
            union |= values[i]
        unions[block] = union
        first = max(start, 1)
        after, before = integers[first : start + block_values], integers[first - 1 : start + block_values]
        for i in range(len(after)):
            num_changes += after[i] != before[i]
    return num_changes + 1
