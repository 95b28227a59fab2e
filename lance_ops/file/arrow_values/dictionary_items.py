"""Replace positions in a dictionary by its items."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops import kernels
from lance_ops.core.arrow import is_text_or_bytes, new_array, new_bytes
from lance_ops.core.errors import ReadTooLarge
from lance_ops.encodings import FixedWidth, VariableWidth, check, check_expansion
from lance_ops.file.arrow_values.arrays import bitmap_of, validity_of, values_of
from lance_ops.kernels import read_only

__all__ = ["take_items"]

_MAX_I32 = np.iinfo(np.int32).max
# The kernel copies whole words, which may reach beyond the last byte.
_SLACK_BYTES = 16


def take_items(items: pa.Array, positions: pa.Array, stored_bytes: int) -> pa.Array:
    """Return the items at these positions, which are within bounds; null if a position, or its item, is null.

    `stored_bytes` is the size of items and positions in the file. Raises `ReadTooLarge` if repeated long strings would
    take far more.
    """
    if not is_text_or_bytes(items.type):
        return items.take(positions)
    strings, numbers = values_of(items), values_of(positions)
    assert isinstance(strings, VariableWidth) and isinstance(numbers, FixedWidth)
    places = read_only(numbers.as_integers().astype(np.uint32, copy=False))
    validity = validity_of(positions)
    present_items = validity_of(items)
    if present_items is not None:
        of_items = present_items.take(places, mode="clip")
        validity = of_items if validity is None else validity & of_items
    present = read_only(np.empty(0, np.uint8) if validity is None else validity.view(np.uint8))
    item_offsets, data = read_only(strings.offsets), read_only(strings.data)
    offsets = new_array(len(places) + 1, strings.offsets.dtype)
    size_bytes = kernels.place_items(item_offsets, len(data), places, present, offsets)
    check(size_bytes >= 0, "a position beyond the dictionary")
    check_expansion(size_bytes, stored_bytes, "dictionary items")
    if size_bytes > _MAX_I32 and offsets.dtype == np.int32:
        raise ReadTooLarge(f"more than 2 GiB in one array of {items.type}: read fewer rows at a time")
    out = new_bytes(size_bytes + _SLACK_BYTES)
    kernels.repeat_items(data, item_offsets, places, out, read_only(offsets))
    buffers = [bitmap_of(validity), pa.py_buffer(offsets), pa.py_buffer(out[:size_bytes])]
    return pa.Array.from_buffers(items.type, len(places), buffers)
