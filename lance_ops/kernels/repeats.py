"""Byte strings of a dictionary, handed out once for every position of them.

Item `p` is `data[offsets[p] : offsets[p + 1]]`. Offsets are 4 or 8 bytes wide, those of the result as wide as those of
the items.
"""

from __future__ import annotations

from lance_ops.core.ndarrays import OffsetArray, Uint8Array, Uint32Array
from lance_ops.kernels.jit import kernel
from lance_ops.kernels.ranges import copy_bytes
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["end_items", "repeat_items"]


@kernel
def end_items(
    offsets: OffsetArray, num_bytes: int, positions: Uint32Array, present: Uint8Array, out_offsets: OffsetArray
) -> int:
    """Write where the items at the positions end when they lie end to end, and return where the last one does.

    Where `present`, if it is not empty, has a 0, the position may be anything and nothing is handed out. Returns -1 for
    a position beyond the items, or an item that does not lie in `num_bytes` bytes. The caller has to see whether the
    result fits the offsets: if not, what was written is worth nothing.
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
    """Copy the items to where `end_items` says, in an `out` of 16 bytes more than that, which may be written too."""
    room = len(data) - 16
    for i in range(len(positions)):
        place = int(out_offsets[i])
        size = int(out_offsets[i + 1]) - place
        if size == 0:
            continue
        start = int(offsets[positions[i]])
        if size <= 16 and start <= room:
            # two whole words: how many bytes of them count makes no difference to the processor
            store_word(out, place, load_word(data, start))
            store_word(out, place + 8, load_word(data, start + 8))
        else:
            copy_bytes(data, start, size, out, place)
