"""The entries of full-zip rows, found one after the other: each says only by its levels and length where it ends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_ops.encodings.contract import CorruptValues, check

__all__ = ["read_words", "walk_entries"]

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.unsignedinteger]


def read_words(data: Bytes, positions: Integers, width: int, ends: Integers | None = None) -> Words | None:
    """Return the little-endian numbers of `width` bytes at these positions; None where the width is 0.

    `ends`, if given, must not lie before the numbers' ends.
    """
    if not width:
        return None
    if ends is not None:
        check((positions + width <= ends).all(), "an entry is cut short")
    words: Words = data[positions[:, None] + np.arange(width)].view(f"<u{width}").reshape(-1)
    return words


def walk_entries(
    data: Bytes,
    starts: Integers,
    ends: Integers,
    *,
    word_bytes: int,
    bits_def: int,
    max_visible_def: int,
    value_bytes: int,
    length_bytes: int,
) -> tuple[Words, Integers, Integers]:
    """Return the control word of every entry in the given rows, and where each value starts and how long it is.

    With lengths, only entries of definition level 0 have a value; without, all visible ones.
    """
    words: list[int] = []
    value_starts: list[int] = []
    sizes: list[int] = []
    mask = (1 << bits_def) - 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        position = start
        while position < end:
            word = int.from_bytes(data[position : position + word_bytes].tobytes(), "little")
            position += word_bytes
            words.append(word)
            level = word & mask
            if level > (0 if length_bytes else max_visible_def):
                continue
            size = value_bytes
            if length_bytes:
                size = int.from_bytes(data[position : position + length_bytes].tobytes(), "little")
                position += length_bytes
            value_starts.append(position)
            sizes.append(size)
            position += size
        if position != end:
            raise CorruptValues("a row ends inside an entry")
    return np.array(words, np.uint32), np.array(value_starts, np.int64), np.array(sizes, np.int64)
