"""The offsets of byte strings or lists in 2.0 pages: where each value ends among the page's bytes or items.

One u64 for each value, without a leading 0. The offset of a null has the null adjustment added, which is larger than
any offset.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from lance_ops.core.arrow import new_array
from lance_ops.core.ndarrays import BoolArray, Int64Array, OffsetArray, Uint64Array
from lance_ops.encodings import FixedWidth, check
from lance_ops.file.page_reading import RowSelection, RowSet, RowSlice, Steps
from lance_ops.file.v2_0.contract import ArrayEncoding, PageBuffers
from lance_ops.file.v2_0.fixed import encode_flat
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["encode_offsets", "read_offsets", "read_spans"]


_MAX_OFFSET = 1 << 62
_MAX_I32 = np.iinfo(np.int32).max


def encode_offsets(
    end_offsets: OffsetArray, total: int, validity: BoolArray | None, buffers: PageBuffers
) -> tuple[pb.ArrayEncoding, int]:
    """Encode where values end, with nulls marked; return the description and the null adjustment."""
    adjustment = total + 1
    stored = end_offsets.astype("<i8", copy=False)
    if validity is not None:
        stored = stored + ~validity * np.int64(adjustment)
    flat = encode_flat(FixedWidth(np.ascontiguousarray(stored).view(np.uint8), 64, len(end_offsets)), buffers)
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=flat))), adjustment


def read_offsets(
    stored: ArrayEncoding, rows: RowSlice, null_adjustment: int
) -> Steps[tuple[int, OffsetArray, BoolArray | None]]:
    """Read the offsets of consecutive rows from the stored offsets of a page.

    Returns the start of the first row, the rows' offsets counted from there (in 32 bits if they fit), and which rows
    are not null.
    """
    with_previous = RowSlice(max(rows.start - 1, 0), rows.stop)
    stops, is_null = yield from _read_end_offsets(stored, with_previous, null_adjustment)
    first = int(stops[0]) if rows.start else 0
    total = int(stops[-1]) - first
    skipped = rows.start - with_previous.start
    width = np.int32 if total <= _MAX_I32 else np.int64
    offsets = new_array(rows.count + 1, width)
    offsets[0] = 0
    if first:
        np.subtract(stops[skipped:], first, out=offsets[1:], casting="unsafe")
    else:
        offsets[1:] = stops[skipped:]
    return first, cast(OffsetArray, offsets), None if is_null is None else _validity(is_null[skipped:])


def read_spans(
    stored: ArrayEncoding, rows: RowSet, null_adjustment: int
) -> Steps[tuple[Int64Array, Int64Array, BoolArray | None]]:
    """Read where each of some rows starts and ends, and which rows are not null, from the stored offsets of a page."""
    indices = rows.indices
    needed = np.union1d(indices, np.maximum(indices - 1, 0))
    found, is_null = yield from _read_end_offsets(stored, RowSet(needed), null_adjustment)
    at = np.searchsorted(needed, indices)
    starts = np.where(indices > 0, found[np.maximum(at - 1, 0)], 0)
    return starts, found[at], None if is_null is None else _validity(is_null[at])


def _read_end_offsets(
    encoding: ArrayEncoding, rows: RowSelection, null_adjustment: int
) -> Steps[tuple[Int64Array, BoolArray | None]]:
    """Read offsets without their null adjustment, and which of them are of nulls; None if there are no nulls."""
    found = yield from encoding.read(rows)
    check(found.null_count == 0, "an offset that is null")
    stored = found.to_numpy(zero_copy_only=False)
    ascending, is_null = _ascend(stored), None
    if null_adjustment and int(stored[-1] if ascending else stored.max()) >= null_adjustment:
        is_null = stored >= np.uint64(null_adjustment)
        stored = stored - np.uint64(null_adjustment) * is_null
        ascending = _ascend(stored)
    check(ascending, "offsets that do not ascend")
    check(int(stored[-1]) <= _MAX_OFFSET, "an offset that is too large")
    return stored.view(np.int64), is_null


def _ascend(stored: Uint64Array) -> bool:
    return bool((stored[1:] >= stored[:-1]).all())


def _validity(is_null: BoolArray) -> BoolArray | None:
    return ~is_null if is_null.any() else None
