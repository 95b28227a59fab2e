"""Read and write the values of dictionary columns in the manifests of 0.1 tables.

    strings     the bytes of all values | i64 positions in the file, one more than there are values
    numbers     the values, one after the other

Little-endian. A field's `Dictionary.offset` is the file position of the i64 positions, or of the numbers; its `length`
counts the values. As in 0.1 data files, an empty string stands for a null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.schema import Dictionary, Field, Schema, with_dictionaries

__all__ = ["empty_dictionaries", "load_dictionaries", "place_dictionaries"]

_POSITION = np.dtype("<i8")


def load_dictionaries(schema: Schema, data: memoryview, path: str) -> Schema:
    """Return the schema with the dictionary values from its manifest's file, `data`.

    Raises `CorruptFile` for values outside the file, and for dictionaries that together are larger than the file.
    """
    remaining_bytes = len(data)

    def load(field: Field) -> Dictionary | None:
        nonlocal remaining_bytes
        stored = field.dictionary
        value_type = _value_type(field)
        if stored is None or value_type is None:
            return stored  # an error, if any, is raised when the column is read or the manifest rewritten
        place = f"dictionary of field {field.name!r}"
        if stored.offset < 0 or stored.length < 0:
            raise CorruptFile(path, place, f"{stored.length} values at {stored.offset}")
        loaded = _load_bytes if is_text_or_bytes(value_type) else _load_numbers
        try:
            values = loaded(data, stored, value_type)
            values.validate(full=True)
        except (ValueError, OverflowError) as error:  # Arrow's are of these kinds too
            raise CorruptFile(path, place, str(error)) from error
        remaining_bytes -= values.nbytes
        if remaining_bytes < 0:
            raise CorruptFile(path, place, "the dictionaries together have more bytes than the file")
        return Dictionary(stored.offset, stored.length, values)

    return with_dictionaries(schema, load)


def place_dictionaries(schema: Schema) -> tuple[bytes, Schema]:
    """Return the bytes of the values, with which a manifest's file begins, and the schema with their positions.

    Raises `UnsupportedFeature` naming a column whose values were not loaded.
    """
    parts = bytearray()

    def place(field: Field) -> Dictionary:
        values = None if field.dictionary is None else field.dictionary.values
        if values is None:
            raise UnsupportedFeature(
                "a dictionary column of a 0.1 table without the values of its dictionary", f"column {field.name!r}"
            )
        if not len(values):
            return Dictionary(0, 0, values)
        if is_text_or_bytes(values.type):
            items = [item or b"" for item in values.cast(pa.large_binary()).to_pylist()]
            bounds = len(parts) + np.append(0, np.cumsum([len(item) for item in items]))
            parts.extend(b"".join(items))
            numbers = bounds.astype(_POSITION)
        else:
            numbers = values.to_numpy(zero_copy_only=False)
        offset = len(parts)
        parts.extend(numbers.tobytes())
        return Dictionary(offset, len(values), values)

    placed = with_dictionaries(schema, place)
    return bytes(parts), placed


def empty_dictionaries(schema: Schema) -> Schema:
    """Return the schema for a 2.x manifest, whose dictionary columns state no values: the data files hold them."""
    return with_dictionaries(schema, lambda field: None if field.dictionary is None else Dictionary(0, 0))


def _value_type(field: Field) -> pa.DataType | None:
    """Return the type of a dictionary column's values; None for a type that a manifest cannot hold."""
    try:
        value_type = field.arrow_type.value_type
    except UnsupportedFeature:
        return None
    is_number = pt.is_integer(value_type) or pt.is_float32(value_type) or pt.is_float64(value_type)
    return value_type if is_number or is_text_or_bytes(value_type) else None


def _load_numbers(data: memoryview, stored: Dictionary, value_type: pa.DataType) -> pa.Array:
    numbers = bytes(_cut(data, stored.offset, stored.length * value_type.byte_width))
    return pa.Array.from_buffers(value_type, stored.length, [None, pa.py_buffer(numbers)])


def _load_bytes(data: memoryview, stored: Dictionary, value_type: pa.DataType) -> pa.Array:
    if not stored.length:
        return pa.nulls(0, value_type)
    bounds = np.frombuffer(_cut(data, stored.offset, (stored.length + 1) * _POSITION.itemsize), _POSITION)
    if (bounds[1:] < bounds[:-1]).any():
        raise ValueError("bounds that do not ascend")
    first, last = int(bounds[0]), int(bounds[-1])
    values = pa.py_buffer(bytes(_cut(data, first, last - first)))
    wide = pt.is_large_string(value_type) or pt.is_large_binary(value_type)
    offsets = (bounds - first).astype(np.int64 if wide else np.int32)
    present = np.packbits(np.diff(bounds) > 0, bitorder="little")
    return pa.Array.from_buffers(value_type, stored.length, [pa.py_buffer(present), pa.py_buffer(offsets), values])


def _cut(data: memoryview, start: int, size: int) -> memoryview:
    if start < 0 or start + size > len(data):
        raise ValueError(f"{size} bytes at {start}, in a file of {len(data)}")
    return data[start : start + size]
