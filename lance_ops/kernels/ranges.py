"""Many short byte ranges, brought together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["copy_ranges"]


@kernel
def copy_ranges(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Copy `data[starts[i] : starts[i] + sizes[i]]` for every `i` to `out`, end to end.

    The caller has checked that the ranges lie in `data` and that `out` is as long as all of them.
    """
    place = 0
    for i in range(len(starts)):
        start, size = starts[i], sizes[i]
        if size > 128:
            out[place : place + size] = data[start : start + size]
        elif start + size + 8 <= len(data) and place + size + 8 <= len(out):
            # whole words: the last one may bring bytes that the next range overwrites
            for word in range(0, size, 8):
                store_word(out, place + word, load_word(data, start + word))
        else:
            for byte in range(size):
                out[place + byte] = data[start + byte]
        place += size
