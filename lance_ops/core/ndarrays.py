"""Names of the numpy array types that annotations use: one element type each, of any shape."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BoolArray",
    "Int32Array",
    "Int64Array",
    "OffsetArray",
    "Uint8Array",
    "Uint16Array",
    "Uint32Array",
    "Uint64Array",
    "UnsignedArray",
]

BoolArray: TypeAlias = NDArray[np.bool_]
Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]
Uint8Array: TypeAlias = NDArray[np.uint8]
Uint16Array: TypeAlias = NDArray[np.uint16]
Uint32Array: TypeAlias = NDArray[np.uint32]
Uint64Array: TypeAlias = NDArray[np.uint64]

UnsignedArray: TypeAlias = NDArray[np.unsignedinteger]
"""Unsigned integers of any one width."""

OffsetArray: TypeAlias = Int32Array | Int64Array
"""Arrow's offsets: `n + 1` positions that delimit `n` values, in 32 or in 64 bits."""
