"""Encode and decode Roaring bitmaps of 32 and 64 bits in their portable form; check them before the C library does.

    u32 cookie      0x303A: then u32 containers
                    0x303B in the low half, containers - 1 in the high half, then a bit per container: is it runs?
    per container   u16 key, u16 cardinality - 1
    offsets         u32 for each container; absent with cookie 0x303B and fewer than 4 containers
    containers      runs: u16 count, then (u16 start, u16 length - 1) each
                    <= 4096 values: u16 each        more: 8192 bytes, LSB first

The C library trusts the counts and the order inside the containers; a bitmap out of order would give wrong answers.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Uint32Array

__all__ = [
    "bitmap_of",
    "decode_bitmap",
    "decode_treemap",
    "encode_bitmap",
    "encode_treemap",
    "join_bitmaps",
    "long_runs_in",
    "offsets_in",
]

_COOKIE = 0x303A
_COOKIE_WITH_RUNS = 0x303B
_ALWAYS_OFFSETS_FROM = 4
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192


def encode_bitmap(bitmap: BitMap) -> bytes:
    """Return the portable bytes, with run containers where they are smaller."""
    compact = BitMap(bitmap)
    compact.run_optimize()
    return bytes(compact.serialize())


def bitmap_of(offsets: npt.NDArray[np.integer[Any]]) -> BitMap:
    """Return a bitmap of numbers below 2^32, in any order."""
    # BitMap copies an array.array whole; it iterates over any other sequence.
    return BitMap(array("I", offsets.astype(np.uint32).tobytes()))


def join_bitmaps(parts: Iterable[Mapping[int, bytes]]) -> dict[int, BitMap]:
    """Return for each fragment the row offsets that any of the parts has; a part holds serialized bitmaps by fragment.

    Tasks give their rows in this form. Several of them may have rows of one fragment.
    """
    joined: dict[int, BitMap] = {}
    for part in parts:
        for fragment_id, data in part.items():
            joined.setdefault(fragment_id, BitMap()).update(BitMap.deserialize(data))
    return joined


def offsets_in(bitmap: BitMap | FrozenBitMap) -> Uint32Array:
    """Return the numbers in a bitmap, ascending."""
    return np.frombuffer(bitmap.to_array(), np.uint32)


def long_runs_in(bitmap: BitMap, least_rows: int) -> list[tuple[int, int]] | None:
    """Return the runs of consecutive numbers, each as its first number and the one after its last.

    None if there are several runs of fewer than `least_rows` numbers on average: the list is longer than it is worth.
    """
    if not bitmap:
        return []
    first, last, most = bitmap.min(), bitmap.max(), max(len(bitmap) // least_rows, 1)
    gaps = bitmap.flip(first, last + 1)  # the numbers between the runs
    last_gap = gaps.max() if gaps else -1
    runs: list[tuple[int, int]] = []
    while first < last_gap and len(runs) < most:
        end = gaps.next_set_bit(first)
        runs.append((first, end))
        first = bitmap.next_set_bit(end)
    return [*runs, (first, last + 1)] if len(runs) < most else None


def decode_bitmap(data: bytes | memoryview, path: str, place: str) -> BitMap:
    """Return the bitmap; raise `CorruptFile` unless `data` is one well-formed bitmap and nothing more."""
    raw = bytes(data)
    try:
        end = _end_of(raw)
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptFile(path, place, f"not a Roaring bitmap: {error}") from error
    if end != len(raw):
        raise CorruptFile(path, place, f"a Roaring bitmap of {end} bytes in {len(raw)}")
    return BitMap.deserialize(raw)


def decode_treemap(data: bytes | memoryview, path: str, place: str) -> dict[int, BitMap]:
    """Decode a set of 64-bit numbers: the bitmap of low halves for each high half. Raise as `decode_bitmap` does.

    Layout: u64 count, then for each high half, ascending: u32 high half, and the bitmap of the low halves.
    """
    raw = bytes(data)
    found: dict[int, BitMap] = {}
    try:
        (count,) = struct.unpack_from("<Q", raw, 0)
        at, last = 8, -1
        for _ in range(count):
            (high,) = struct.unpack_from("<I", raw, at)
            end = at + 4 + _end_of(raw[at + 4 :])
            if high <= last or end > len(raw):
                raise ValueError(f"high half {high} after {last}")
            found[high], at, last = BitMap.deserialize(raw[at + 4 : end]), end, high
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptFile(path, place, f"not a Roaring treemap: {error}") from error
    if at != len(raw):
        raise CorruptFile(path, place, f"a Roaring treemap of {at} bytes in {len(raw)}")
    return found


def encode_treemap(low_halves: Mapping[int, BitMap]) -> bytes:
    """Return the bytes that `decode_treemap` reads; empty bitmaps are left out."""
    parts = [
        struct.pack("<I", high) + encode_bitmap(low_halves[high]) for high in sorted(low_halves) if low_halves[high]
    ]
    return b"".join([struct.pack("<Q", len(parts)), *parts])


def _end_of(raw: bytes) -> int:
    """Check the bitmap at the start of `raw` and return its end; raise `ValueError` if it is not well formed."""
    (cookie,) = struct.unpack_from("<I", raw, 0)
    if cookie == _COOKIE:
        (containers,) = struct.unpack_from("<I", raw, 4)
        at, run_flags = 8, b""
    elif cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        containers = (cookie >> 16) + 1
        at = 4 + (containers + 7) // 8
        run_flags = raw[4:at]
    else:
        raise ValueError(f"cookie {cookie:#x}")
    if containers > _MAX_CONTAINERS:
        raise ValueError(f"{containers} containers")
    keys, lasts = _u16s(raw, at, 2 * containers).reshape(-1, 2).T
    at += 4 * containers
    if not _ascend(keys):
        raise ValueError("containers out of order")
    if not run_flags or containers >= _ALWAYS_OFFSETS_FROM:
        at += 4 * containers
    for index, last in enumerate(lasts.tolist()):
        cardinality = last + 1
        if run_flags and run_flags[index // 8] >> (index % 8) & 1:
            at = _end_of_runs(raw, at, cardinality)
        elif cardinality <= _MAX_ARRAY:
            if not _ascend(_u16s(raw, at, cardinality)):
                raise ValueError(f"values out of order at {at}")
            at += 2 * cardinality
        else:
            bits = np.unpackbits(np.frombuffer(raw, np.uint8, _BITSET_BYTES, at))
            if int(np.count_nonzero(bits)) != cardinality:
                raise ValueError(f"a bitset at {at} does not have {cardinality} values")
            at += _BITSET_BYTES
    return at


def _end_of_runs(raw: bytes, at: int, cardinality: int) -> int:
    count = int(_u16s(raw, at, 1)[0])
    runs = _u16s(raw, at + 2, 2 * count).reshape(-1, 2).astype(np.int64)
    starts, last = runs[:, 0], runs.sum(axis=1)
    if (starts[1:] <= last[:-1]).any() or (last > 0xFFFF).any() or int((runs[:, 1] + 1).sum()) != cardinality:
        raise ValueError(f"runs at {at} overlap, overflow or do not have {cardinality} values")
    return at + 2 + 4 * count


def _ascend(numbers: np.ndarray[tuple[int], np.dtype[np.uint16]]) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _u16s(raw: bytes, at: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    return np.frombuffer(raw, "<u2", count, at)
