"""Twins of the kernels that measure, pack and unpack integers; `lance_ops.kernels.fastlanes` has a block's layout."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array, UnsignedArray
from lance_ops.kernels.without_numba.numbers import read_numbers, read_words

__all__ = ["measure_integers", "pack_runs", "pick_packed", "read_widths", "unpack_blocks"]

_ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
_BLOCK = 1024
_ROW_BYTES = 128
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_POWERS = np.uint64(1) << np.arange(64, dtype=np.uint64)


def read_widths(
    data: Uint8Array, starts: Int64Array, sizes: Int64Array, word_bytes: int, widths: Int64Array
) -> int | None:
    """Do what the kernel `read_widths` does; return None for malformed input, which the kernel reports.

    It reads the words before all blocks at once.
    """
    if (sizes < word_bytes).any():
        return None
    found = read_numbers(data, starts, word_bytes)
    if ((found < 0) | (found > (sizes - word_bytes) // _ROW_BYTES)).any():
        return None
    widths[:] = found
    return len(starts)


def unpack_blocks(
    data: Uint8Array, starts: Int64Array, widths: Int64Array, places: Int64Array, bits: int, out: Uint8Array
) -> int | None:
    """Do what the kernel `unpack_blocks` does; return None for malformed input, which the kernel reports.

    It unpacks all blocks of one width together, row by row. Then it copies blocks that follow each other at once, in
    order: the next block may lie over the end of a block with fewer values.
    """
    if not _are_blocks(data, starts, widths, bits):
        return None
    if not len(starts):
        return 0
    rows = _unpack(data, starts, widths, bits)
    size = _ROW_BYTES * bits
    cuts = np.flatnonzero(np.diff(places) != size) + 1
    for first, end in pairwise((0, *cuts.tolist(), len(places))):
        place, count = int(places[first]), end - first
        blocks = out[place : place + count * size].view(rows.dtype).reshape(count, bits, -1)
        blocks[:] = rows[:, first:end].transpose(1, 0, 2)
    return len(starts)


def _unpack(data: Uint8Array, starts: Int64Array, widths: Int64Array, bits: int) -> UnsignedArray:
    """Return the rows of all blocks: item `[row, block]` has the values of one row of a block, in the order of values.

    A row has `1024 / bits` values. Equal rows of all blocks lie side by side, because numpy is slow on short runs.
    """
    distinct = np.unique(widths).tolist()
    if len(distinct) == 1:
        return _unpack_alike(data, starts, distinct[0], bits)
    rows = np.empty((bits, len(starts), _BLOCK // bits), f"<u{bits // 8}")
    for width in distinct:
        alike = np.flatnonzero(widths == width)
        rows[:, alike] = _unpack_alike(data, starts[alike], width, bits)
    return rows


def _unpack_alike(data: Uint8Array, starts: Int64Array, width: int, bits: int) -> UnsignedArray:
    """Return the rows of blocks of one width, as `_unpack` does."""
    lanes, dtype = _BLOCK // bits, np.dtype(f"<u{bits // 8}")
    rows = np.empty((bits, len(starts), lanes), dtype)
    if not width:
        rows.fill(0)
        return rows
    packed = np.concatenate([data[start : start + _ROW_BYTES * width] for start in starts.tolist()])
    words = np.ascontiguousarray(packed.view(dtype).reshape(-1, width, lanes).transpose(1, 0, 2))
    number = dtype.type
    mask = number((1 << width) - 1)
    for row in range(bits):
        word, shift = divmod(row * width, bits)
        values = rows[(_ORDER[row >> 3] * 16 + (row & 7) * 128) // lanes]
        np.right_shift(words[word], number(shift), out=values)
        if shift + width > bits:
            values |= words[word + 1] << number(bits - shift)
        values &= mask
    return rows


def pick_packed(
    data: Uint8Array, starts: Int64Array, widths: Int64Array, places: Int64Array, bits: int, out: Uint64Array
) -> int | None:
    """Do what the kernel `pick_packed` does; return None for malformed input, which the kernel reports.

    It reads the one or two words that have each value's bits.
    """
    if not _are_blocks(data, starts, widths, bits) or ((places < 0) | (places >= _BLOCK)).any():
        return None
    out[:] = 0
    wide = np.flatnonzero(widths > 0)  # a value of no bits has no word
    width, place = widths[wide], places[wide]
    log_bits = bits.bit_length() - 1
    log_lanes = 10 - log_bits
    column = place & (_ROW_BYTES - 1)
    row = np.array(_ORDER)[column >> log_lanes << (log_lanes - 4)] * 8 + (place >> 7)
    bit = row * width
    shift = bit & (bits - 1)
    lane = column & ((1 << log_lanes) - 1)
    at = starts[wide] + (((bit >> log_bits << log_lanes) + lane) << (log_bits - 3))
    value = read_words(data, at, bits >> 3) >> shift.astype(np.uint64)
    split = np.flatnonzero(shift + width > bits)
    rest = read_words(data, at[split] + _ROW_BYTES, bits >> 3)
    value[split] |= rest << (bits - shift[split]).astype(np.uint64)
    out[wide] = value & (_FULL >> (64 - width).astype(np.uint64))
    return len(starts)


def _are_blocks(data: Uint8Array, starts: Int64Array, widths: Int64Array, bits: int) -> bool:
    fits = (widths >= 0) & (widths <= bits) & (starts >= 0) & (starts <= len(data) - _ROW_BYTES * widths)
    return bool(fits.all())


def measure_integers(integers: UnsignedArray, block_values: int, unions: UnsignedArray) -> int:
    """Do what the kernel `measure_integers` does.

    It unites the bits of all blocks at once.
    """
    if not len(integers):
        return 0
    unions[:] = np.bitwise_or.reduceat(integers, np.arange(len(unions)) * block_values)
    return 1 + int(np.count_nonzero(integers[1:] != integers[:-1]))


def pack_runs(data: Uint8Array, counts: Int64Array, width: int, bits: int, out: Uint8Array, sizes: Int64Array) -> int:
    """Do what the kernel `pack_runs` does.

    It packs all runs of one width together, row by row, and then copies each to its place.
    """
    blocks = _blocks_of_runs(data.view(f"<u{bits // 8}"), counts)
    word_bytes = bits // 8 if width < 0 else 0
    widths = np.full(len(counts), width)
    if width < 0 and len(counts):
        widths = np.searchsorted(_POWERS, np.bitwise_or.reduce(blocks, axis=1).astype(np.uint64), side="right")
    sizes[:] = word_bytes + _ROW_BYTES * widths
    places = np.cumsum(sizes) - sizes
    for each in np.unique(widths).tolist():
        alike = np.flatnonzero(widths == each)
        packed = np.zeros((len(alike), word_bytes + _ROW_BYTES * each), np.uint8)
        packed[:, :word_bytes] = np.array([each], "<u8").view(np.uint8)[:word_bytes]
        packed[:, word_bytes:] = _pack(blocks[alike], each, bits)
        for place, block in zip(places[alike].tolist(), packed, strict=True):
            out[place : place + len(block)] = block
    return len(counts)


def _blocks_of_runs(values: UnsignedArray, counts: Int64Array) -> UnsignedArray:
    """Return a block for each run, filled up with zeros."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total == len(counts) * _BLOCK:
        return values[:total].reshape(-1, _BLOCK)
    blocks = np.zeros(len(counts) * _BLOCK, values.dtype)
    blocks[np.arange(total) + np.repeat(np.arange(len(counts)) * _BLOCK - (ends - counts), counts)] = values[:total]
    return blocks.reshape(-1, _BLOCK)


def _pack(blocks: UnsignedArray, width: int, bits: int) -> Uint8Array:
    """Return packed blocks of one width as rows of bytes."""
    lanes, number = _BLOCK // bits, blocks.dtype.type
    words = np.zeros((len(blocks), width, lanes), blocks.dtype)
    mask = number((1 << width) - 1)
    for row in range(bits if width else 0):
        word, shift = divmod(row * width, bits)
        first = _ORDER[row >> 3] * 16 + (row & 7) * 128
        value = blocks[:, first : first + lanes] & mask
        words[:, word] |= value << number(shift)
        if shift + width > bits:
            words[:, word + 1] |= value >> number(bits - shift)
    return words.view(np.uint8).reshape(len(blocks), _ROW_BYTES * width)
