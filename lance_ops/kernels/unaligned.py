"""Little-endian numbers at any byte of an array: words of eight bytes, and numbers of 1 to 8 bytes.

`load_word` and `store_word` check nothing: the kernel that calls them has made sure that the eight bytes are in range.
When numba is asked to check the bounds of arrays (`NUMBA_BOUNDSCHECK=1`) or to compile nothing (`NUMBA_DISABLE_JIT=1`),
they read and write byte by byte, so that these accesses are checked too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import config

from lance_ops.core.ndarrays import Uint8Array
from lance_ops.core.tricks import Trick
from lance_ops.kernels.compile import part

__all__ = ["load_number", "load_word", "read_number", "store_word"]

_config: Any = config


def _load_bytes(array: Uint8Array, offset: int) -> np.uint64:
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(array[offset + byte]) << np.uint64(8 * byte)
    return word


def _store_bytes(array: Uint8Array, offset: int, word: np.uint64) -> None:
    for byte in range(8):
        array[offset + byte] = np.uint8(word >> np.uint64(8 * byte) & np.uint64(0xFF))


load_word: Callable[[Uint8Array, int], np.uint64]
store_word: Callable[[Uint8Array, int, np.uint64], None]
if _config.BOUNDSCHECK or _config.DISABLE_JIT or not Trick.UNALIGNED_WORDS.is_on():
    load_word, store_word = part(_load_bytes), part(_store_bytes)
else:
    from lance_ops.kernels.compile import load_word, store_word


@part
def read_number(data: Uint8Array, place: int, width: int) -> int:
    """Read a little-endian number of up to 8 bytes, byte by byte; a number of 2^63 or more comes back negative."""
    number = np.uint64(0)
    for byte in range(width):
        number |= np.uint64(data[place + byte]) << np.uint64(8 * byte)
    return np.int64(number)  # type: ignore[return-value]  # an int to numba


@part
def load_number(array: Uint8Array, offset: int, width: int) -> np.uint64:
    """Read a little-endian number of 1 to 8 bytes in the array, with one load where eight bytes lie there."""
    if offset + 8 <= len(array):
        return load_word(array, offset) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * width))
    return np.uint64(read_number(array, offset, width))
