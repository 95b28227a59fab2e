"""Walk through the entries of full-zip rows one by one: only an entry's levels and length say where it ends."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint8Array, UnsignedArray
from lance_ops.encodings import check
from lance_ops.kernels import read_only

__all__ = ["read_words", "walk_entries"]


def read_words(
    data: Uint8Array, positions: Int64Array, width: int, ends: Int64Array | None = None
) -> UnsignedArray | None:
    """Return the little-endian numbers of `width` bytes at these positions; None if the width is 0.

    Raises `CorruptValues` if a number ends after its position in `ends`.
    """
    if not width:
        return None
    if ends is not None:
        check((positions + width <= ends).all(), "an entry is cut short")
    words: UnsignedArray = data[positions[:, None] + np.arange(width)].view(f"<u{width}").reshape(-1)
    return words


def walk_entries(
    data: Uint8Array,
    starts: Int64Array,
    ends: Int64Array,
    *,
    word_bytes: int,
    bits_def: int,
    max_visible_def: int,
    value_bytes: int,
    length_bytes: int,
) -> tuple[UnsignedArray, Int64Array, Int64Array]:
    """Return the control word of every entry in the given rows, and the start and size of each value.

    If values have lengths, only entries of definition level 0 have a value; otherwise all visible entries have one.
    """
    rows = read_only(data), read_only(starts), read_only(ends)
    shape = word_bytes, bits_def, 0 if length_bytes else max_visible_def, value_bytes, length_bytes
    nothing = np.empty(0, np.int64)
    num_entries, num_values = kernels.walk_entries(*rows, *shape, np.empty(0, np.uint32), nothing, nothing)
    check(num_entries >= 0, "a row ends inside an entry")
    words = np.empty(num_entries, np.uint32)
    value_starts, sizes = np.empty(num_values, np.int64), np.empty(num_values, np.int64)
    kernels.walk_entries(*rows, *shape, words, value_starts, sizes)
    return words, value_starts, sizes
