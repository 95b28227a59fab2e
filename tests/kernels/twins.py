"""Each kernel again, in plain numpy and Python, as slow and as clear as can be."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)


def lane_order(bits: int) -> Integers:
    """Return, for every row and lane in turn, which of the 1024 values is there."""
    rows, lanes = np.arange(bits), np.arange(1024 // bits)
    first = np.array([ORDER[row // 8] * 16 + (row % 8) * 128 for row in rows])
    return (first[:, None] + lanes).astype(np.int64)


def unpack_block(packed: Bytes, width: int, bits: int) -> NDArray[np.unsignedinteger]:
    lanes = 1024 // bits
    rows = np.unpackbits(packed, bitorder="little").reshape(width, lanes, bits)
    of_lane = rows.transpose(1, 0, 2).reshape(lanes, bits, width) if width else np.zeros((lanes, bits, 0), np.uint8)
    powers = np.array([1 << i for i in range(width)], object)
    values = (of_lane.astype(object) * powers).sum(axis=2) if width else np.zeros((lanes, bits), object)
    out = np.zeros(1024, f"u{bits // 8}")
    out[lane_order(bits)] = values.T.astype(out.dtype)
    return out


def pack_block(values: NDArray[np.unsignedinteger], width: int, bits: int) -> Bytes:
    lanes = 1024 // bits
    in_order = values[lane_order(bits)].T.astype(object)
    of_lane = np.array([[(int(value) >> bit) & 1 for value in lane for bit in range(width)] for lane in in_order])
    rows = of_lane.reshape(lanes, width, bits).transpose(1, 0, 2).astype(np.uint8)
    return np.packbits(rows.reshape(-1), bitorder="little")


def copy_ranges(data: Bytes, starts: Integers, sizes: Integers, out: Bytes, places: Integers) -> None:
    for start, size, place in zip(starts, sizes, places, strict=True):
        out[place : place + size] = data[start : start + size]


def fsst_decode(codes: bytes, symbols: list[bytes]) -> bytes:
    out, at = b"", 0
    while at < len(codes):
        if codes[at] == 255:
            out += codes[at + 1 : at + 2]
            at += 2
        else:
            out += symbols[codes[at]]
            at += 1
    return out


def lz4_decode(block: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(block):
        token = block[at]
        at += 1
        length, at = _lz4_length(block, token >> 4, at)
        out += block[at : at + length]
        at += length
        if at >= len(block):
            break
        distance = int.from_bytes(block[at : at + 2], "little")
        length, at = _lz4_length(block, token & 15, at + 2)
        for _ in range(length + 4):
            out.append(out[-distance])
    return bytes(out)


def _lz4_length(block: bytes, nibble: int, at: int) -> tuple[int, int]:
    length = nibble
    while nibble == 15:
        length += block[at]
        at += 1
        if block[at - 1] != 255:
            break
    return length, at


def join_strings(chunks: list[bytes], counts: list[int], width: int) -> tuple[list[bytes], list[int]]:
    strings = []
    for chunk, count in zip(chunks, counts, strict=True):
        offsets = [int.from_bytes(chunk[i * width : (i + 1) * width], "little") for i in range(count + 1)]
        strings += [chunk[a:b] for a, b in itertools.pairwise(offsets)]
    return strings, np.cumsum([0, *map(len, strings)]).tolist()


def cut_chunks(costs: list[int], chunk_bytes: int, max_bytes: int, max_values: int) -> list[int]:
    counts = []
    while costs:
        fits = [n for n in range(1, min(len(costs), max_values) + 1) if sum(costs[:n]) + chunk_bytes <= max_bytes]
        powers = [1, *(n for n in fits if n & (n - 1) == 0)]
        counts.append(len(costs) if len(costs) in fits else powers[-1])
        costs = costs[counts[-1] :]
    return counts
