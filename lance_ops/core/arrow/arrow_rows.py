"""Select rows of Arrow data, and work around a bug in pyarrow's `take` and `filter`.

For a slice of a fixed-size list of fixed-size lists, at any depth, `take` and `filter` of pyarrow 26 return the items
of other rows: they ignore the offset of the inner list. Concatenation copies such a slice to an array without an
offset, for which both are correct.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow.without_pandas import array_of_numbers, array_of_truths
from lance_ops.core.ndarrays import BoolArray, Int64Array

__all__ = ["rows_at", "rows_where", "safe_to_take"]

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def rows_at(data: Rows, positions: Int64Array | pa.Array) -> Rows:
    """Return the rows at these positions, in this order; a null position gives a row of nulls."""
    return safe_to_take(data).take(positions if isinstance(positions, pa.Array) else array_of_numbers(positions))


def rows_where(data: Rows, mask: BoolArray | pa.Array) -> Rows:
    """Return the rows for which the mask is true."""
    return safe_to_take(data).filter(mask if isinstance(mask, pa.Array | pa.ChunkedArray) else array_of_truths(mask))


def safe_to_take(data: Rows) -> Rows:
    """Return the same rows for which `take` and `filter` are correct; a caller that selects repeatedly copies once."""
    for at, field in enumerate(data.schema):
        if _is_misread(field.type):
            column = data.column(at)
            if isinstance(column, pa.ChunkedArray):
                column = pa.chunked_array([_copy(chunk) for chunk in column.chunks], field.type)
            else:
                column = _copy(column)
            data = data.set_column(at, field, column)
    return data


def _copy(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array, array.slice(0, 0)]) if _is_sliced(array) else array


def _is_sliced(array: pa.Array) -> bool:
    """Return whether an array, or one nested in it, has an offset into its buffers."""
    if isinstance(array, pa.ExtensionArray):
        return _is_sliced(array.storage)
    if array.offset:
        return True
    if isinstance(array, pa.StructArray):
        return any(_is_sliced(array.field(index)) for index in range(array.type.num_fields))
    if isinstance(array, pa.MapArray):
        return _is_sliced(array.keys) or _is_sliced(array.items)
    is_list = isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray)
    return is_list and _is_sliced(array.values)


def _is_misread(arrow_type: pa.DataType) -> bool:
    return _is_misread_storage(_storage(arrow_type))


@lru_cache(maxsize=1024)
def _is_misread_storage(arrow_type: pa.DataType) -> bool:
    """Answer for a storage type: an extension type that is defined in Python has no hash."""
    if pt.is_fixed_size_list(arrow_type) and pt.is_fixed_size_list(_storage(arrow_type.value_type)):
        return True
    return any(_is_misread(arrow_type.field(index).type) for index in range(arrow_type.num_fields))


def _storage(arrow_type: pa.DataType) -> pa.DataType:
    return arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type
