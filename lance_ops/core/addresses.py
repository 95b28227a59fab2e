"""Make and split row addresses: a fragment's id in the high 32 bits, the row's physical offset in the low 32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_ops.core.ndarrays import Uint64Array

__all__ = ["TOMBSTONE_ROW", "fragment_of", "offset_of", "row_addr", "row_addrs"]

TOMBSTONE_ROW = (1 << 64) - 1
"""The address that a remap gives to deleted rows."""

_OFFSET_BITS = np.uint64(32)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)


def row_addr(fragment_id: int, offset: int) -> int:
    """Return the address of one row."""
    return fragment_id << 32 | offset


def row_addrs(fragment_id: int, offsets: npt.ArrayLike) -> Uint64Array:
    """Return the addresses of rows of one fragment."""
    return np.asarray(offsets, dtype=np.uint64) | np.uint64(fragment_id << 32)


def fragment_of(addresses: npt.ArrayLike) -> Uint64Array:
    """Return the fragment id of each address."""
    shifted: Uint64Array = np.asarray(addresses, dtype=np.uint64) >> _OFFSET_BITS
    return shifted


def offset_of(addresses: npt.ArrayLike) -> Uint64Array:
    """Return the physical offset in its fragment of each address."""
    masked: Uint64Array = np.asarray(addresses, dtype=np.uint64) & _OFFSET_MASK
    return masked
