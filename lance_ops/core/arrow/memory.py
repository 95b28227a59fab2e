"""Allocate large numpy arrays from Arrow's memory pool, which reuses freed memory.

The C library returns a large array's memory to the system when it is freed. The next array then costs a page fault for
every page, which is more than filling it costs. Arrow's pool also counts the memory, together with Arrow's own arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.ndarrays import Uint8Array

__all__ = ["new_array", "new_bytes"]

_POOLED_BYTES = 128 << 10
"""Below this size the C library reuses freed memory too, and is faster."""


def new_bytes(size: int) -> Uint8Array:
    """Return `size` uninitialized bytes."""
    if size < _POOLED_BYTES:
        return np.empty(size, np.uint8)
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def new_array(length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialized array."""
    element = np.dtype(dtype)
    if length * element.itemsize < _POOLED_BYTES:
        return np.empty(length, element)
    return new_bytes(length * element.itemsize).view(element)
