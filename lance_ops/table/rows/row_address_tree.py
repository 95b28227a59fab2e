"""Encode and decode a set of row addresses, or of row ids, as the reference's `RowAddrTreeMap` does.

    u32 count, then for each: u32 high half, u32 size in bytes, a roaring bitmap of the low halves in its portable form

All numbers are little-endian, and the high halves ascend. A size of 0 stands for every number with that high half.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile
from lance_ops.table.rows.roaring import decode_bitmap, encode_bitmap

__all__ = ["decode_address_tree", "encode_address_tree"]


def encode_address_tree(low_halves: Mapping[int, BitMap | None]) -> bytes:
    """Return the bytes of a set, given as the low halves of its numbers by high half, None for all of them.

    Empty bitmaps are left out.
    """
    listed = ((high, low_halves[high]) for high in sorted(low_halves))
    parts = [(high, b"" if low is None else encode_bitmap(low)) for high, low in listed if low is None or low]
    entries = (struct.pack("<II", high, len(data)) + data for high, data in parts)
    return b"".join([struct.pack("<I", len(parts)), *entries])


def decode_address_tree(data: bytes | memoryview, path: str, place: str) -> dict[int, BitMap | None]:
    """Return the low halves by high half, None for all of them.

    Raises `CorruptFile` unless the bytes are one such set and nothing more.
    """
    raw = bytes(data)
    found: dict[int, BitMap | None] = {}
    try:
        (count,) = struct.unpack_from("<I", raw)
        at = 4
        for _ in range(count):
            high, size = struct.unpack_from("<II", raw, at)
            at += 8 + size
            if at > len(raw):
                raise ValueError(f"{at - len(raw)} bytes are missing")
            if high in found:
                raise ValueError(f"high half {high} comes twice")
            found[high] = decode_bitmap(raw[at - size : at], path, f"{place} of {high}") if size else None
        if at != len(raw):
            raise ValueError(f"{len(raw) - at} bytes follow the last bitmap")
    except (struct.error, ValueError) as error:
        raise CorruptFile(path, place, f"not a set of row addresses: {error}") from error
    return found
