"""Read the byte strings of chunks with numpy; `lance_ops.kernels.strings` says what a chunk is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array

__all__ = ["JoinedStrings", "strings_of_chunks"]


class JoinedStrings(NamedTuple):
    """The bytes of strings end to end; string `i` is `data[offsets[i] : offsets[i + 1]]`."""

    data: Uint8Array
    offsets: Int64Array


def strings_of_chunks(
    data: Uint8Array, starts: Int64Array, sizes: Int64Array, counts: Int64Array, width: int
) -> JoinedStrings | None:
    """Join the strings of all chunks; return None if the offsets of a chunk are not in order or point beyond it."""
    offsets = np.zeros(int(counts.sum()) + 1, np.int64)
    strings: list[Uint8Array] = []
    value, place = 0, 0
    for start, size, count in zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True):
        chunk = data[start : start + size]
        header = (count + 1) * width
        found = chunk[:header].view(f"<u{width}")
        first, last = int(found[0]), int(found[-1])
        if not header <= first <= last <= size:
            return None
        np.add(found[1:], place - first, out=offsets[value + 1 : value + count + 1], dtype=np.int64, casting="unsafe")
        strings.append(chunk[first:last])
        value += count
        place += last - first
    if (offsets[1:] < offsets[:-1]).any():  # those of each chunk are in order if all of them are
        return None
    return JoinedStrings(np.concatenate(strings) if strings else np.zeros(0, np.uint8), offsets)
