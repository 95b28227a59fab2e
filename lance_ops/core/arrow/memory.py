"""Memory for large arrays of values: Arrow's pool, which hands out again what was freed.

The C library gives a large array's memory back to the system as soon as it is freed, and the next array costs a fault
for every page: more than filling it does. It is also where the memory of Arrow's own results is, and counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.ndarrays import Uint8Array

__all__ = ["new_array", "new_bytes"]

_POOLED_BYTES = 128 << 10
"""Less than this, the C library keeps for itself too, and is faster."""


def new_bytes(size: int) -> Uint8Array:
    """Return so many bytes to be written to, whatever they hold now."""
    if size < _POOLED_BYTES:
        return np.empty(size, np.uint8)
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def new_array(length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array to be written to, whatever it holds now."""
    element = np.dtype(dtype)
    if length * element.itemsize < _POOLED_BYTES:
        return np.empty(length, element)
    return new_bytes(length * element.itemsize).view(element)
