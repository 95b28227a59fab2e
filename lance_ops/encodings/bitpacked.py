"""The two bit packings of 2.0 pages.

    bitpacked                values of W bits laid end to end, the lowest bit first; if signed, the top bit is the sign
    bitpacked for non-neg    blocks of 1024 values in FastLanes order, the last filled up

Writers stopped making either before 2.1; their width is the same for the whole page.
"""

from __future__ import annotations

import numpy as np

from lance_ops.encodings.bits import bits_of, num_bytes_of_bits
from lance_ops.encodings.contract import check
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, packed_bytes, unpack
from lance_ops.encodings.values import Bytes, FixedWidth

__all__ = ["decode_bitpacked", "decode_bitpacked_for_non_neg"]

# Bits are unpacked to bytes on the way.
_VALUES_AT_ONCE = 1 << 15


def decode_bitpacked(
    data: Bytes, bit_width: int, bits_per_value: int, first: int, num_values: int, *, signed: bool
) -> FixedWidth:
    """Return the values from number `first` on, widened to `bits_per_value`.

    Raises `CorruptValues` for widths that cannot be and for data that ends before the values do.
    """
    _check_widths(bit_width, bits_per_value)
    needed = num_bytes_of_bits((first + num_values) * bit_width)
    check(needed <= len(data), f"{len(data)} bytes for {first + num_values} values of {bit_width} bits")
    out = np.empty(num_values * bits_per_value // 8, np.uint8)
    for start in range(0, num_values, _VALUES_AT_ONCE):
        count = min(_VALUES_AT_ONCE, num_values - start)
        packed = bits_of(data, (first + start) * bit_width, (first + start + count) * bit_width)
        bits = np.unpackbits(packed, count=count * bit_width, bitorder="little").reshape(count, bit_width)
        wide = np.zeros((count, bits_per_value), np.uint8)
        wide[:, :bit_width] = bits
        if signed:
            wide[:, bit_width:] = bits[:, -1:]
        end = (start + count) * bits_per_value // 8
        out[start * bits_per_value // 8 : end] = np.packbits(wide.reshape(-1), bitorder="little")
    return FixedWidth(out, bits_per_value, num_values)


def decode_bitpacked_for_non_neg(
    data: Bytes, bit_width: int, bits_per_value: int, first: int, num_values: int
) -> FixedWidth:
    """Return the values from number `first` on, widened to `bits_per_value`; only their blocks are unpacked.

    Raises `CorruptValues` for widths that cannot be and for data that ends before the values do.
    """
    _check_widths(bit_width, bits_per_value)
    blocks = np.arange(first // BLOCK, -(-(first + num_values) // BLOCK), dtype=np.int64)
    widths = np.full(len(blocks), bit_width, np.int64)
    unpacked = unpack(data, blocks * packed_bytes(widths), widths, np.full(len(blocks), BLOCK), bits_per_value)
    skipped = first % BLOCK
    return unpacked.slice(skipped, skipped + num_values)


def _check_widths(bit_width: int, bits_per_value: int) -> None:
    check(bits_per_value in INTEGER_BITS, f"bitpacked values of {bits_per_value} bits")
    check(0 < bit_width <= bits_per_value, f"{bits_per_value}-bit values packed into {bit_width} bits")
