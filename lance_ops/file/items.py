"""Items of a dictionary, handed out once for every position of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.encodings.expansion import FREE_BYTES, check_expansion
from lance_ops.file.arrays import is_variable

__all__ = ["take_items"]


def take_items(items: pa.Array, positions: pa.Array, stored_bytes: int) -> pa.Array:
    """Return the items at these positions, which are within bounds; null where a position is.

    `stored_bytes` is what both take in the file. Raises `ReadTooLarge` where a few long byte strings would be repeated
    without end.
    """
    # no item is longer than all of them together
    if is_variable(items.type) and len(items) and len(positions) * items.nbytes > FREE_BYTES:
        lengths = pc.binary_length(items)
        if len(positions) * (pc.max(lengths).as_py() or 0) > FREE_BYTES:
            total = pc.sum(lengths.cast(pa.int64()).take(positions)).as_py() or 0
            check_expansion(total, stored_bytes, "dictionary items")
    return items.take(positions)
