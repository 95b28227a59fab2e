"""Pack and unpack blocks of 1024 integers in FastLanes order, which `lance_ops.kernels` defines."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.encodings.contract import check
from lance_ops.encodings.page_values import FixedWidth
from lance_ops.kernels import read_only

__all__ = ["BLOCK", "INTEGER_BITS", "bit_lengths", "pack", "packed_bytes", "pick", "unpack", "unpack_to"]

BLOCK = 1024
INTEGER_BITS = (8, 16, 32, 64)

_POWERS = np.uint64(1) << np.arange(64, dtype=np.uint64)


def packed_bytes(widths: Int64Array) -> Int64Array:
    """Return the bytes of packed blocks."""
    return widths * (BLOCK // 8)


def unpack(data: Uint8Array, starts: Int64Array, widths: Int64Array, counts: Int64Array, bits: int) -> FixedWidth:
    """Unpack one block from each start of `data` and keep its first `counts[i]` values.

    This function checks the starts against the data, and widths and counts against the format.
    """
    check(not len(starts) or counts.max() <= BLOCK, f"a block of more than {BLOCK} values")
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    size_bytes = total * (bits // 8)
    out = unpack_to(data, starts, widths, (ends - counts) * (bits // 8), bits, size_bytes)
    return FixedWidth(out[:size_bytes], bits, total)


def unpack_to(
    data: Uint8Array, starts: Int64Array, widths: Int64Array, places: Int64Array, bits: int, size_bytes: int
) -> Uint8Array:
    """Unpack one block from each start of `data` to its place in a new array of at least `size_bytes`.

    Each block is unpacked whole, so a later block overwrites the tail of an earlier one, and the array has room for all
    of the last one. Places are below `size_bytes`.
    """
    if len(starts) == 0:
        return new_bytes(size_bytes)
    out = new_bytes(max(size_bytes, int(places.max()) + BLOCK * (bits // 8)))
    blocks = read_only(starts), read_only(widths), read_only(places)
    unpacked = kernels.unpack_blocks(read_only(data), *blocks, bits, out)
    check(unpacked == len(starts), f"a packed block of more than {bits} bits, or one that ends beyond its buffer")
    return out


def pick(data: Uint8Array, starts: Int64Array, widths: Int64Array, places: Int64Array, bits: int) -> FixedWidth:
    """Return value `places[i]` of the block at `starts[i]`, `widths[i]` bits wide, without unpacking blocks."""
    out = np.empty(len(starts), np.uint64)
    blocks = read_only(starts), read_only(widths), read_only(places)
    picked = kernels.pick_packed(read_only(data), *blocks, bits, out)
    check(picked == len(starts), f"a packed block of more than {bits} bits or {BLOCK} values, or one cut short")
    return FixedWidth(out.astype(f"<u{bits // 8}", copy=False).view(np.uint8), bits, len(out))


def bit_lengths(words: Uint64Array) -> Int64Array:
    """Return the number of bits that each word needs."""
    return np.searchsorted(_POWERS, words, side="right")


def pack(values: FixedWidth, counts: Int64Array, width: int | None = None) -> tuple[Uint8Array, Int64Array]:
    """Pack runs of `counts[i]` values, each into one block of this width; return them end to end, with their sizes.

    Without a width, each run is packed as narrow as possible, and a word with its width stands in front. A run has at
    most 1024 values; zeros fill it up.
    """
    bits = values.bits_per_value
    block_bytes = BLOCK // 8 * width if width is not None else (BLOCK + 1) * bits // 8
    out, sizes = new_bytes(len(counts) * block_bytes), np.empty(len(counts), np.int64)
    data = read_only(values.data[: values.size_bytes])
    kernels.pack_runs(data, read_only(counts), -1 if width is None else width, bits, out, sizes)
    return out[: int(sizes.sum())], sizes
