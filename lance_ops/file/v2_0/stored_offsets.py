"""Where byte strings or lists end among a page's bytes or items: how a 2.0 page stores extents.

One u64 a value, without a leading 0. The end of a null has the null adjustment added, which is more than any end.
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

__all__ = ["encode_ends", "read_offsets", "read_spans"]


_MAX_END = 1 << 62
_MAX_I32 = np.iinfo(np.int32).max


def encode_ends(
    ends: OffsetArray, total: int, validity: BoolArray | None, buffers: PageBuffers
) -> tuple[pb.ArrayEncoding, int]:
    """Store where values end, nulls marked; return that and the null adjustment."""
    adjustment = total + 1
    stored = ends.astype("<i8", copy=False)
    if validity is not None:
        stored = stored + ~validity * np.int64(adjustment)
    flat = encode_flat(FixedWidth(np.ascontiguousarray(stored).view(np.uint8), 64, len(ends)), buffers)
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=flat))), adjustment


def read_offsets(
    ends: ArrayEncoding, rows: RowSlice, null_adjustment: int
) -> Steps[tuple[int, OffsetArray, BoolArray | None]]:
    """Read the extents of consecutive rows, given the ends of all.

    Returns where the first row starts, the offsets of all of them counted from there (32 bits wide where they fit),
    and which rows are not null.
    """
    with_previous = RowSlice(max(rows.start - 1, 0), rows.stop)
    stops, is_null = yield from _read_ends(ends, with_previous, null_adjustment)
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
    ends: ArrayEncoding, rows: RowSet, null_adjustment: int
) -> Steps[tuple[Int64Array, Int64Array, BoolArray | None]]:
    """Read where each of some rows starts and ends, given the ends of all; and which rows are not null."""
    indices = rows.indices
    needed = np.union1d(indices, np.maximum(indices - 1, 0))
    found, is_null = yield from _read_ends(ends, RowSet(needed), null_adjustment)
    at = np.searchsorted(needed, indices)
    starts = np.where(indices > 0, found[np.maximum(at - 1, 0)], 0)
    return starts, found[at], None if is_null is None else _validity(is_null[at])


def _read_ends(
    ends: ArrayEncoding, rows: RowSelection, null_adjustment: int
) -> Steps[tuple[Int64Array, BoolArray | None]]:
    """Read ends, which ascend, without their adjustment, and which of them had one; no flags if none had."""
    found = yield from ends.read(rows)
    check(found.null_count == 0, "an offset that is null")
    stored = found.to_numpy(zero_copy_only=False)
    ascending, is_null = _ascend(stored), None
    if null_adjustment and int(stored[-1] if ascending else stored.max()) >= null_adjustment:
        is_null = stored >= np.uint64(null_adjustment)
        stored = stored - np.uint64(null_adjustment) * is_null
        ascending = _ascend(stored)
    check(ascending, "offsets that do not ascend")
    check(int(stored[-1]) <= _MAX_END, "an absurd offset")
    return stored.view(np.int64), is_null


def _ascend(stored: Uint64Array) -> bool:
    return bool((stored[1:] >= stored[:-1]).all())


def _validity(is_null: BoolArray) -> BoolArray | None:
    return ~is_null if is_null.any() else None
