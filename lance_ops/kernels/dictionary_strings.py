"""Copy the byte strings of a dictionary once for each position that refers to them.

Item `p` is `data[offsets[p] : offsets[p + 1]]`. Offsets are 4 or 8 bytes wide; those of the result are as wide as those
of the items.
"""

from __future__ import annotations

from lance_ops.core.ndarrays import OffsetArray, Uint8Array, Uint32Array
from lance_ops.kernels.compile import kernel
from lance_ops.kernels.ranges import copy_bytes
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["place_items", "repeat_items"]


@kernel
def place_items(
    offsets: OffsetArray, num_bytes: int, positions: Uint32Array, present: Uint8Array, out_offsets: OffsetArray
) -> int:
    """Write where the items at the positions end when they lie end to end, and return where the last one ends.

    Where `present` is 0, the position may be anything and its item is empty; an empty `present` means that all are
    present. Returns -1 for a position beyond the items, or an item that does not lie in `num_bytes` bytes. The caller
    checks whether the returned end fits the type of the offsets: if not, the written offsets are invalid.
    """
    place, num_items = 0, len(offsets) - 1
    out_offsets[0] = 0
    for i in range(len(positions)):
        if len(present) == 0 or present[i] != 0:
            position = int(positions[i])
            if position >= num_items:
                return -1
            start, end = int(offsets[position]), int(offsets[position + 1])
            if start < 0 or end < start or end > num_bytes:
                return -1
            place += end - start
        out_offsets[i + 1] = place
    return place


@kernel
def repeat_items(
    data: Uint8Array, offsets: OffsetArray, positions: Uint32Array, out: Uint8Array, out_offsets: OffsetArray
) -> None:
    """Copy the items to the places that `place_items` wrote. `out` has 16 spare bytes, which may be written too."""
    room = len(data) - 16
    for i in range(len(positions)):
        place = int(out_offsets[i])
        size = int(out_offsets[i + 1]) - place
        if size == 0:
            continue
        start = int(offsets[positions[i]])
        if size <= 16 and start <= room:
            # always two whole words: the next item overwrites the excess, and no branch depends on the size
            store_word(out, place, load_word(data, start))
            store_word(out, place + 8, load_word(data, start + 8))
        else:
            copy_bytes(data, start, size, out, place)
