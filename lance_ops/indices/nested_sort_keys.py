"""Map structs and lists to bytes that compare as the values do.

    a value      02, then its bytes        a null     01 before all values, or 03 after them
    a list       its items, then 00        a struct   its fields, one after the other
    fixed width  the key of `sort_keys`, big-endian, its sign bit flipped        decimals  the same, of all their bytes
    text, binary the bytes, 00 as 00 ff, then 00 00

So a list comes after every list that is its prefix, and the first field counts most. A null inside a value sorts
before or after the other values just as a null in the column does, whether the column ascends or descends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_any_list
from lance_ops.indices.sort_keys import is_sortable, sort_keys

__all__ = ["is_nested_sortable", "nested_keys"]

_NULL_FIRST, _VALUE, _NULL_LAST = b"\x01", b"\x02", b"\x03"
_END = b"\x00"
_BYTES = pa.large_binary()


def is_nested_sortable(value_type: pa.DataType) -> bool:
    """Return whether a type is nested or null and `nested_keys` can order its values."""
    types = pa.types
    if types.is_null(value_type):
        return True
    if types.is_struct(value_type):
        return all(_has_order(value_type.field(place).type) for place in range(value_type.num_fields))
    return is_any_list(value_type) and _has_order(value_type.value_type)


def nested_keys(values: pa.Array, *, ascending: bool, nulls_first: bool) -> pa.Array:
    """Map values of a nested type to large_binary keys for a column with this direction; null values stay null."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), _BYTES)
    null = _NULL_FIRST if nulls_first == ascending else _NULL_LAST
    keys = _bytes(values, null)
    return pc.if_else(values.is_valid(), keys, pa.scalar(None, _BYTES)) if values.null_count else keys


def _has_order(value_type: pa.DataType) -> bool:
    return is_sortable(value_type) or is_nested_sortable(value_type)


def _marked(values: pa.Array, null: bytes) -> pa.Array:
    """Return the bytes of items or fields, each with its marker; no result is null."""
    if pa.types.is_null(values.type):
        return pa.repeat(pa.scalar(null, _BYTES), len(values))
    keys = _joined(pa.scalar(_VALUE, _BYTES), _bytes(values, null))
    return pc.if_else(values.is_valid(), keys, pa.scalar(null, _BYTES)) if values.null_count else keys


def _bytes(values: pa.Array, null: bytes) -> pa.Array:
    """Return the bytes of values; the bytes of a null are undefined."""
    types, value_type = pa.types, values.type
    if types.is_struct(value_type):
        fields = [_marked(values.field(place), null) for place in range(value_type.num_fields)]
        return _joined(*fields) if fields else pa.repeat(pa.scalar(b"", _BYTES), len(values))
    if types.is_fixed_size_list(value_type):
        start, size = values.offset, value_type.list_size
        return _listed(np.arange(start, start + len(values) + 1) * size, values.values, null)
    if is_any_list(value_type):
        return _listed(values.offsets.to_numpy(), values.values, null)
    keys = sort_keys(values)
    if types.is_binary(keys.type) or types.is_large_binary(keys.type) or types.is_fixed_size_binary(keys.type):
        escaped = pc.replace_substring(keys.cast(pa.binary()).cast(_BYTES), b"\x00", b"\x00\xff")
        return _joined(escaped, pa.scalar(b"\x00\x00", _BYTES))
    return _big_endian(keys)


def _listed(offsets: npt.NDArray[np.integer], items: pa.Array, null: bytes) -> pa.Array:
    first, last = int(offsets[0]), int(offsets[-1])
    marked = _marked(items.slice(first, last - first), null)
    begins = (offsets - first).astype(np.int64)
    joined = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(begins), marked), pa.scalar(b"", _BYTES))
    return _joined(joined, pa.scalar(_END, _BYTES))


def _joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    join: Callable[..., pa.Array] = pc.binary_join_element_wise
    return join(*parts, pa.scalar(b"", _BYTES), null_handling="replace", null_replacement="")


def _big_endian(keys: pa.Array) -> pa.Array:
    """Return numbers of a fixed width as big-endian bytes; flip the sign bit of signed ones."""
    width = keys.type.bit_width // 8
    data = np.frombuffer(keys.buffers()[1], np.uint8)[keys.offset * width :][: len(keys) * width]
    reversed_bytes = data.reshape(-1, width)[:, ::-1].copy()
    if not pa.types.is_unsigned_integer(keys.type):
        reversed_bytes[:, 0] ^= 0x80
    offsets = np.arange(len(keys) + 1, dtype=np.int64) * width
    return pa.Array.from_buffers(_BYTES, len(keys), [None, pa.py_buffer(offsets), pa.py_buffer(reversed_bytes)])
