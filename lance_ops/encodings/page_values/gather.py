"""Copy byte ranges of a buffer next to each other, or from there to given places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import as_strided

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels import read_only

__all__ = ["gather_equal", "gather_ranges", "scatter_ranges", "uniform_stride"]

# Up to this many ranges, a loop in Python costs less than starting Arrow or copying the bytes.
_FEW_RANGES = 64
# Up to this many ranges, Arrow is as fast as the kernel, and loading the kernel would cost time and memory.
_MANY_RANGES = 16 * 1024
_LONG_RANGE_BYTES = 4096


def uniform_stride(starts: Int64Array, sizes: Int64Array) -> int | None:
    """Return the distance between ranges if all are equally long and equally far apart, else None.

    Returns None for fewer than two ranges.
    """
    if len(starts) < 2:
        return None
    stride = int(starts[1] - starts[0])
    if stride < 0 or sizes[0] != sizes[-1] or starts[-1] - starts[0] != stride * (len(starts) - 1):
        return None
    if (np.diff(starts) != stride).any() or (sizes != sizes[0]).any():
        return None
    return stride


def gather_ranges(data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Uint8Array:
    """Return the bytes of all ranges end to end, without a copy if they already lie so.

    The caller has checked that the ranges lie in `data`, as `ChunkBuffers` does.
    """
    if len(starts) == 0:
        return np.empty(0, np.uint8)
    total = int(sizes.sum())
    first = int(starts[0])
    if len(starts) == 1:
        return data[first : first + total]
    if len(starts) > 2 and uniform_stride(starts[:-1], sizes[:-1]) is not None:
        return _gather_uniform(data, starts, sizes, total)
    gaps = starts[1:] - starts[:-1] - sizes[:-1]
    if not gaps.any():
        return data[first : first + total]
    if (sizes == sizes[0]).all():
        return gather_equal(data, starts, int(sizes[0]))
    if _FEW_RANGES < len(starts) <= _MANY_RANGES and gaps.min() >= 0:
        return _gather_ascending(data, starts, sizes)
    out = new_bytes(total)
    scatter_ranges(data, starts, sizes, out, np.cumsum(sizes) - sizes)
    return out


def scatter_ranges(
    data: Uint8Array, starts: Int64Array, sizes: Int64Array, out: Uint8Array, places: Int64Array
) -> None:
    """Copy every range of `data` to its place in `out`.

    The caller has checked that ranges and places lie in their arrays.
    """
    if len(starts) > _FEW_RANGES and int(sizes.sum()) < len(starts) * _LONG_RANGE_BYTES:
        kernels.copy_ranges(read_only(data), read_only(starts), read_only(sizes), out, read_only(places))
        return
    for start, size, place in zip(starts.tolist(), sizes.tolist(), places.tolist(), strict=True):
        out[place : place + size] = data[start : start + size]


def gather_equal(data: Uint8Array, starts: Int64Array, size: int) -> Uint8Array:
    """Return the bytes of equally long ranges end to end."""
    if not size or not len(starts):
        return np.empty(0, np.uint8)
    # a view of overlapping elements, one for each position in `data`
    values = np.ndarray((len(data) - size + 1,), f"V{size}", data, strides=(1,))
    return values[starts].view(np.uint8)


def _gather_ascending(data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Uint8Array:
    """Describe ranges and gaps as alternating byte strings, of which Arrow takes every second one."""
    offsets = np.stack([starts, starts + sizes], axis=1).reshape(-1)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    strings = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    # `pa.array` would import pandas if it is installed
    every_second = pa.Array.from_buffers(pa.int64(), len(starts), [None, pa.py_buffer(np.arange(0, len(offsets), 2))])
    return np.frombuffer(strings.take(every_second).buffers()[2], np.uint8)


def _gather_uniform(data: Uint8Array, starts: Int64Array, sizes: Int64Array, total: int) -> Uint8Array:
    """View all ranges but the last, whose length may differ, as rows of one strided array."""
    first, size, rows = int(starts[0]), int(sizes[0]), len(starts) - 1
    stride = int(starts[1]) - first
    last_start, last_size = int(starts[-1]), int(sizes[-1])
    if stride == size and last_start == first + rows * stride:
        return data[first : first + total]
    out = new_bytes(total)
    out[: rows * size].reshape(rows, size)[:] = as_strided(data[first:], (rows, size), (stride, 1), writeable=False)
    out[rows * size :] = data[last_start : last_start + last_size]
    return out
