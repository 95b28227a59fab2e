"""Make Arrow values from Python values, and numpy arrays from Arrow values, without pandas.

`pa.scalar`, `pa.array`, `to_numpy` and `empty_table` import pandas if it is installed. Reads, look-ups and writes use
these functions, so that a cold process does not import it to filter by common literals, to search an index, to write a
list, or to check a schema. The import takes 0.2 s of processor time, a third of
such a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.ndarrays import BoolArray, Uint64Array

__all__ = [
    "array_of_numbers",
    "array_of_scalars",
    "array_of_truths",
    "empty_table",
    "numbers_of",
    "scalar",
    "truths_of",
]

_JOINED_SCALARS = 64
"""Longer lists are quicker converted by `pa.array`."""


def scalar(value: Any, kind: pa.DataType | None = None) -> pa.Scalar:
    """Return what `pa.scalar` returns. Nulls, truths, numbers, texts, bytes and counts of ticks need no pandas."""
    wanted = _inferred(value) if kind is None else kind
    if wanted is not None:
        if value is None and not pa.types.is_nested(wanted) and not isinstance(wanted, pa.BaseExtensionType):
            return pa.nulls(1, wanted)[0]
        content = _content(value, wanted)
        if content is not None:
            return pa.Array.from_buffers(wanted, 1, [None, *map(pa.py_buffer, content)])[0]
    return pa.scalar(value, kind)


def array_of_scalars(values: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    """Return an array of values that have its type."""
    if len(values) > _JOINED_SCALARS or not values or any(value.type != kind for value in values):
        return pa.array(values, kind)
    return pa.concat_arrays([pa.repeat(value, 1) for value in values])


def array_of_numbers(numbers: npt.NDArray[Any], is_null: BoolArray | None = None) -> pa.Array:
    """Return numbers as an array without a copy if they are contiguous; `is_null` says which of them are null."""
    numbers = np.ascontiguousarray(numbers)
    validity = None if is_null is None or not is_null.any() else _bits(~is_null)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [validity, pa.py_buffer(numbers)])


def numbers_of(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return numbers without nulls as `to_numpy` returns them; those of an array, or of one chunk, are not copied."""
    kind = np.dtype(values.type.to_pandas_dtype())
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
        for chunk in chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def bits_of_floats(values: pa.Array) -> Uint64Array:
    """Return 64 bits of each float of an array without nulls.

    Equal floats have equal bits: so have the two zeros, and all NaNs.
    """
    numbers = numbers_of(values).astype(np.float64) + 0.0  # -0.0 becomes 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits: Uint64Array = numbers.view(np.uint64)
    return bits


def truths_of(truths: pa.BooleanArray) -> BoolArray:
    """Return truth values as numpy booleans, null as False; Arrow's own conversion takes ten times longer."""
    if truths.null_count:
        truths = truths.fill_null(False)
    if not len(truths):
        return np.empty(0, np.bool_)
    bits = np.frombuffer(truths.buffers()[1], np.uint8)[truths.offset // 8 :]
    skipped = truths.offset % 8
    return np.unpackbits(bits, count=skipped + len(truths), bitorder="little")[skipped:].view(np.bool_)


def array_of_truths(mask: BoolArray) -> pa.Array:
    """Return a mask as an array."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return what `schema.empty_table` returns: no rows, in one chunk for each column."""
    try:
        return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    except pa.ArrowNotImplementedError:  # a union, or an extension type below another type
        return schema.empty_table()


def _bits(mask: BoolArray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _inferred(value: Any) -> pa.DataType | None:
    """Return the type that `pa.scalar` gives a value; None for what is not made here."""
    if value is None:
        return pa.null()
    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}.get(type(value))


def _content(value: Any, kind: pa.DataType) -> tuple[Any, ...] | None:
    """Return the buffers of an array of one value; None if `pa.scalar` must make, round or refuse it."""
    types = pa.types
    if type(value) is str and kind == pa.string():
        text = value.encode()
        return np.array([0, len(text)], np.int32), text
    if type(value) is bytes and kind == pa.binary():
        return np.array([0, len(value)], np.int32), value
    if type(value) is bool and types.is_boolean(kind):
        return (bytes([value]),)
    if type(value) is float and (types.is_float64(kind) or types.is_float32(kind)):
        with np.errstate(over="ignore"):
            rounded = np.array([value], kind.to_pandas_dtype())
        return (rounded,) if float(rounded[0]) == value or value != value else None
    if type(value) is int and (types.is_integer(kind) or _is_count(kind)):
        limits = np.iinfo(f"{'u' if types.is_unsigned_integer(kind) else ''}int{kind.bit_width}")
        return (np.array([value], limits.dtype),) if limits.min <= value <= limits.max else None
    if type(value) is Decimal and types.is_decimal(kind) and value.is_finite():
        sign, digits, exponent = value.as_tuple()
        zeros = int(exponent) + kind.scale
        if zeros >= 0 and len(digits) + zeros <= kind.precision:
            number = int("".join(map(str, digits))) * 10**zeros
            return ((-number if sign else number).to_bytes(kind.byte_width, "little", signed=True),)
    return None


def _is_count(kind: pa.DataType) -> bool:
    """Return whether values are numbers of days or of other units of time in 32 or 64 bits, as `pa.scalar` takes."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind))
