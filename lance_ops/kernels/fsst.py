"""FSST: bytes as codes of up to 255 symbols of 1 to 8 bytes; code 255 stands for the byte after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel
from lance_ops.kernels.unaligned import store_word

__all__ = ["fsst_decode"]

_ESCAPE = 255


@kernel
def fsst_decode(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    symbols: NDArray[np.uint64],
    lengths: NDArray[np.int64],
    out: NDArray[np.uint8],
    out_offsets: NDArray[np.int64],
) -> int:
    """Decode value `i` from `data[offsets[i] : offsets[i + 1]]`; write its bytes to `out` and where they end.

    `lengths` has 256 entries, 0 for a code without a symbol. The caller has checked the offsets, and that `out` is
    eight times as long as the codes and eight bytes more. Returns the number of values decoded: fewer than given when
    that value has a code without a symbol or ends inside an escape.
    """
    place = 0
    out_offsets[0] = 0
    for i in range(len(offsets) - 1):
        code, end = offsets[i], offsets[i + 1]
        while code < end:
            symbol = data[code]
            if symbol != _ESCAPE:
                length = lengths[symbol]
                if length == 0:
                    return i
                store_word(out, place, symbols[symbol])
                place += length
                code += 1
            elif code + 1 < end:
                out[place] = data[code + 1]
                place += 1
                code += 2
            else:
                return i
        out_offsets[i + 1] = place
    return len(offsets) - 1
