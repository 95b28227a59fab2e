"""Cut, pick and join runs of bits in byte arrays; the lowest bit of a byte comes first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import Int64Array, Uint8Array

__all__ = ["bits_at", "bits_of", "concat_bits", "num_bytes_of_bits"]


def num_bytes_of_bits(num_bits: int) -> int:
    """Return how many bytes hold that many bits."""
    return -(-num_bits // 8)


def bits_of(data: Uint8Array, start: int, stop: int) -> Uint8Array:
    """Return the bits in `[start, stop)`, shifted so that they begin at a byte; no copy if they already do."""
    if start % 8 == 0:
        return data[start // 8 : num_bytes_of_bits(stop)]
    window = data[start // 8 : num_bytes_of_bits(stop)]
    skipped = start % 8
    return np.packbits(np.unpackbits(window, bitorder="little")[skipped : skipped + stop - start], bitorder="little")


def bits_at(data: Uint8Array, positions: Int64Array) -> Uint8Array:
    """Return the bits at these positions, side by side."""
    flags = (data[positions >> 3] >> (positions & 7).astype(np.uint8)) & np.uint8(1)
    return np.packbits(flags, bitorder="little")


def concat_bits(parts: Sequence[tuple[Uint8Array, int]]) -> Uint8Array:
    """Join the first `n` bits of each `(data, n)`."""
    if all(num_bits % 8 == 0 for _, num_bits in parts[:-1]):
        pieces = [data[: num_bytes_of_bits(num_bits)] for data, num_bits in parts]
        return np.concatenate(pieces, out=new_bytes(sum(map(len, pieces))))
    bits = [np.unpackbits(data, bitorder="little", count=num_bits) for data, num_bits in parts]
    return np.packbits(np.concatenate(bits), bitorder="little")
