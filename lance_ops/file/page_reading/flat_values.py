"""Read fixed-width values that lie side by side in a file."""

from __future__ import annotations

import numpy as np

from lance_ops.encodings import FixedWidth, gather_ranges
from lance_ops.file.page_reading.decoding_steps import Steps
from lance_ops.file.page_reading.rows import RowSelection, RowSlice
from lance_ops.file.page_reading.source import Extent, Ranges

__all__ = ["read_flat_values"]


def read_flat_values(extent: Extent, bits: int, rows: RowSelection) -> Steps[FixedWidth]:
    """Read values of one width that lie side by side in `extent`; consecutive values are not copied."""
    base = extent.position
    if isinstance(rows, RowSlice):
        start, stop = base + rows.start * bits // 8, base + -(-rows.stop * bits // 8)
        fetched = yield Ranges.of((start, stop))
        skipped = rows.start * bits % 8 // bits if bits else 0
        values = FixedWidth(fetched.view(start, stop), bits, skipped + rows.count)
        return values.slice(skipped, skipped + rows.count) if skipped else values
    if bits % 8:
        bit_positions = rows.indices * bits
        starts = base + bit_positions // 8
        fetched = yield Ranges(starts, starts + 1)
        flags = fetched.data[fetched.locate(starts)] >> (bit_positions % 8).astype(np.uint8) & 1
        return FixedWidth(np.packbits(flags, bitorder="little"), bits, rows.count)
    starts = base + rows.starts * (bits // 8)
    sizes = np.full(len(starts), rows.run * (bits // 8), np.int64)
    fetched = yield Ranges(starts, starts + sizes)
    return FixedWidth(gather_ranges(fetched.data, fetched.locate(starts), sizes), bits, rows.count)
