"""Eight bytes at any place of a byte array, read or written as one little-endian word.

Nothing is checked: a kernel that uses these has made sure that the eight bytes lie in the array. When numba is asked to
check the bounds of arrays (`NUMBA_BOUNDSCHECK=1`) or to compile nothing (`NUMBA_DISABLE_JIT=1`), the bytes are read and
written one by one, so that they are checked as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # llvmlite states none
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from lance_ops.core.ndarrays import Uint8Array
from lance_ops.kernels.jit import part

__all__ = ["load_number", "load_word", "read_number", "store_word"]

_pointer_add: Any = cgutils.pointer_add
_intrinsic: Any = intrinsic
_config: Any = config


def _place(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(_pointer_add(builder, data, offset), ir.IntType(64).as_pointer())


def _load_word(typing_context: Any, array: Any, offset: Any) -> Any:
    """Return the word at byte `offset`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.load(_place(context, builder, signature.args[0], *args))
        word.align = 1
        return word

    return types.uint64(array, types.intp), generate


def _store_word(typing_context: Any, array: Any, offset: Any, word: Any) -> Any:
    """Write `word` at byte `offset`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, offset, word = args
        store = builder.store(word, _place(context, builder, signature.args[0], array, offset))
        store.align = 1
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


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
if _config.BOUNDSCHECK or _config.DISABLE_JIT:
    load_word, store_word = part(_load_bytes), part(_store_bytes)
else:
    load_word, store_word = _intrinsic(_load_word), _intrinsic(_store_word)


@part
def read_number(data: Uint8Array, place: int, width: int) -> int:
    """Read a little-endian number of up to 8 bytes, byte by byte; one of 2^63 or more comes back negative."""
    number = np.uint64(0)
    for byte in range(width):
        number |= np.uint64(data[place + byte]) << np.uint64(8 * byte)
    return np.int64(number)  # type: ignore[return-value]  # an int to numba


@part
def load_number(array: Uint8Array, offset: int, width: int) -> np.uint64:
    """Read a little-endian number of 1 to 8 bytes, which lie in the array; at once where a word does too."""
    if offset + 8 <= len(array):
        return load_word(array, offset) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * width))
    return np.uint64(read_number(array, offset, width))
