"""Find the entries and values of full-zip rows; only an entry's levels and length say where it ends.

entry    control word of 1, 2 or 4 bytes | [length of 4 or 8 bytes] | [value]
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint32Array
from lance_ops.kernels.compile import kernel
from lance_ops.kernels.unaligned import read_number

__all__ = ["walk_entries"]


@kernel
def walk_entries(
    data: Uint8Array,
    starts: Int64Array,
    ends: Int64Array,
    word_bytes: int,
    bits_def: int,
    most_def: int,
    value_bytes: int,
    length_bytes: int,
    words: Uint32Array,
    value_starts: Int64Array,
    sizes: Int64Array,
) -> tuple[int, int]:
    """Find every entry of the rows, and the values of entries whose definition level is at most `most_def`.

    With `words` empty, entries and values are only counted. The caller has checked that rows lie in `data`. Returns
    the number of entries and of values; the first is -1 where a row ends inside an entry.
    """
    mask = (np.int64(1) << bits_def) - 1
    num_entries, num_values = 0, 0
    for row in range(len(starts)):
        place, end = starts[row], ends[row]
        while place < end:
            if place + word_bytes > end:
                return -1, num_values
            word = read_number(data, place, word_bytes)
            place += word_bytes
            if len(words):
                words[num_entries] = word
            num_entries += 1
            if word & mask > most_def:
                continue
            size = value_bytes
            if length_bytes:
                if place + length_bytes > end:
                    return -1, num_values
                size = read_number(data, place, length_bytes)
                place += length_bytes
            if size < 0 or size > end - place:
                return -1, num_values
            if len(words):
                value_starts[num_values] = place
                sizes[num_values] = size
            num_values += 1
            place += size
    return num_entries, num_values
