"""Blocks of 1024 integers in FastLanes order (`lance_ops.kernels.fastlanes` says which), packed and unpacked."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.encodings.contract import check
from lance_ops.encodings.values import Bytes, FixedWidth, Integers
from lance_ops.kernels.arrays import readable

__all__ = ["BLOCK", "INTEGER_BITS", "bit_widths", "pack", "packed_bytes", "unpack"]

BLOCK = 1024
INTEGER_BITS = (8, 16, 32, 64)


def packed_bytes(widths: Integers) -> Integers:
    """Return the bytes of packed blocks."""
    return widths * (BLOCK // 8)


def unpack(data: Bytes, starts: Integers, widths: Integers, counts: Integers, bits: int) -> FixedWidth:
    """Unpack one block from each start of `data` and keep its first `counts[i]` values.

    The starts are checked here against the data, widths and counts against the format.
    """
    num_values = int(counts.sum())
    if len(starts) == 0:
        return FixedWidth(np.empty(0, np.uint8), bits, 0)
    check(widths.min() >= 0 and widths.max() <= bits, f"packed values of more than {bits} bits")
    check(counts.max() <= BLOCK, f"a block of more than {BLOCK} values")
    inside = starts.min() >= 0 and (starts + packed_bytes(widths) <= len(data)).all()
    check(inside, "a packed block ends beyond its buffer")
    places = (np.cumsum(counts) - counts) * (bits // 8)
    # every block is unpacked whole: the last one writes past the values that are kept
    out = np.empty((num_values + BLOCK) * (bits // 8), np.uint8)
    kernels.unpack_blocks(readable(data), readable(starts), readable(widths), readable(places), bits, out)
    return FixedWidth(out[: num_values * (bits // 8)], bits, num_values)


def bit_widths(values: FixedWidth, counts: Integers) -> Integers:
    """Return the bits that the largest of each run of `counts[i]` values needs; the runs are consecutive."""
    widths = np.zeros(len(counts), np.int64)
    filled = counts > 0
    if filled.any():
        starts = (np.cumsum(counts) - counts)[filled]
        union = np.bitwise_or.reduceat(values.as_integers(), starts)
        widths[filled] = _bit_length(union.astype(np.uint64))
    return widths


def _bit_length(words: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> Integers:
    width = np.zeros(words.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        above = words >> np.uint64(step) > 0
        width += above * step
        words = np.where(above, words >> np.uint64(step), words)
    return width + (words > 0)


def pack(values: FixedWidth, counts: Integers, widths: Integers, header_bytes: int = 0) -> tuple[Bytes, Integers]:
    """Pack runs of `counts[i]` values, each into one block behind `header_bytes` zeros; return them with their sizes.

    A run has at most 1024 values and is filled up with zeros.
    """
    data = _fill_blocks(values, counts)
    sizes = packed_bytes(widths) + header_bytes
    out = np.zeros(int(sizes.sum()), np.uint8)
    places = np.cumsum(sizes) - sizes + header_bytes
    kernels.pack_blocks(readable(data), readable(widths), readable(places), values.bits_per_value, out)
    return out, sizes


def _fill_blocks(values: FixedWidth, counts: Integers) -> Bytes:
    """Return each run of values filled up to a block with zeros; without a copy when all are full."""
    data = values.data[: values.size_bytes]
    if (counts == BLOCK).all():
        return data
    value_bytes = values.bits_per_value // 8
    blocks = np.zeros((len(counts), BLOCK * value_bytes), np.uint8)
    even = len(counts) - 1 if (counts[:-1] == counts[0]).all() else 0
    size = int(counts[0]) * value_bytes
    blocks[:even, :size] = data[: size * even].reshape(even, size)
    ends = np.cumsum(counts) * value_bytes
    for i in range(even, len(counts)):
        size = int(counts[i]) * value_bytes
        blocks[i, :size] = data[int(ends[i]) - size : int(ends[i])]
    return blocks.reshape(-1)
