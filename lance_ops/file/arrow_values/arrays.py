"""Convert the values of a page to Arrow arrays, and back. Fixed-width bytes are not copied either way.

Validity is not part of the values: levels store it, so it is passed beside them. Only the items of fixed-size lists
carry their own validity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text, is_text_or_bytes
from lance_ops.core.errors import ReadTooLarge, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, OffsetArray, Uint8Array
from lance_ops.encodings import (
    CorruptValues,
    FixedSizeListValues,
    FixedWidth,
    PackedValues,
    Values,
    VariableWidth,
    bits_of,
    check,
    select_fixed,
)

__all__ = [
    "array_of",
    "bitmap_of",
    "bits_per_value_of",
    "buffer_bytes",
    "copy_array",
    "validity_of",
    "values_of",
    "with_empty_slots",
]


_MAX_I32 = np.iinfo(np.int32).max


def array_of(values: Values, arrow_type: pa.DataType, validity: BoolArray | None = None) -> pa.Array:
    """Return values as an array of a storage type.

    Raises `CorruptValues` if the values do not have the form of that type: page and schema disagree.
    """
    bitmap = bitmap_of(validity)
    if pt.is_dictionary(arrow_type):
        plain = array_of(values, arrow_type.value_type, validity)
        return plain.dictionary_encode().cast(arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        if not isinstance(values, FixedSizeListValues) or values.dimension != arrow_type.list_size:
            raise _mismatch(values, arrow_type)
        items = _items_of(values, arrow_type.value_type)
        return pa.Array.from_buffers(arrow_type, values.num_values, [bitmap], children=[items])
    if pt.is_struct(arrow_type):
        if not isinstance(values, PackedValues) or len(values.children) != arrow_type.num_fields:
            raise _mismatch(values, arrow_type)
        children = [array_of(child, arrow_type.field(i).type) for i, child in enumerate(values.children)]
        return pa.Array.from_buffers(arrow_type, values.num_values, [bitmap], children=children)
    if is_text_or_bytes(arrow_type):
        if not isinstance(values, VariableWidth):
            raise _mismatch(values, arrow_type)
        check(values.size_bytes <= len(values.data), "byte strings that end beyond their bytes")
        offsets = _offsets_for(values.offsets, arrow_type)
        buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(values.data)]
        array = pa.Array.from_buffers(arrow_type, values.num_values, buffers)
        if is_text(arrow_type) and not _is_utf8(values):
            array.validate(full=True)  # bytes under nulls may be anything
        return array
    if not isinstance(values, FixedWidth) or values.bits_per_value != bits_per_value_of(arrow_type):
        raise _mismatch(values, arrow_type)
    check(values.size_bytes <= len(values.data), f"{len(values.data)} bytes for {values.num_values} values")
    return pa.Array.from_buffers(arrow_type, values.num_values, [bitmap, pa.py_buffer(values.data)])


def values_of(array: pa.Array) -> Values:
    """Return the values of an array of a storage type, without its validity.

    Items of fixed-size lists keep theirs. The array must be neither a dictionary nor a view.
    """
    arrow_type = array.type
    if is_text_or_bytes(arrow_type):
        return _variable_values(array)
    if pt.is_fixed_size_list(arrow_type):
        dimension = arrow_type.list_size
        items = array.values.slice(array.offset * dimension, len(array) * dimension)
        inner = values_of(items)
        assert isinstance(inner, FixedWidth | FixedSizeListValues)
        return FixedSizeListValues(inner, dimension, _validity_bits(items))
    if pt.is_struct(arrow_type):
        return PackedValues(tuple(values_of(array.field(i)) for i in range(arrow_type.num_fields)))
    if pt.is_null(arrow_type):
        return FixedWidth(np.empty(0, np.uint8), 0, len(array))
    bits = bits_per_value_of(arrow_type)
    buffer = array.buffers()[1]
    if buffer is None or not len(array) or not bits:
        return FixedWidth(np.zeros(-(-len(array) * bits // 8), np.uint8), bits, len(array))
    data = np.frombuffer(buffer, np.uint8)
    return FixedWidth(bits_of(data, array.offset * bits, (array.offset + len(array)) * bits), bits, len(array))


def with_empty_slots(values: Values, present: BoolArray) -> Values:
    """Return one value for every flag: the next value where the flag is set; elsewhere an empty one, or any value."""
    if len(present) == values.num_values:
        return values
    if isinstance(values, VariableWidth):
        before = np.append(0, np.cumsum(present, dtype=np.int64))
        return VariableWidth(values.offsets[before], values.data)
    if isinstance(values, PackedValues):
        return PackedValues(tuple(with_empty_slots(child, present) for child in values.children))
    if isinstance(values, FixedSizeListValues):
        items = with_empty_slots(values.items, np.repeat(present, values.dimension))
        assert isinstance(items, FixedWidth | FixedSizeListValues)
        validity = values.validity
        if validity is not None:
            flags = with_empty_slots(FixedWidth(validity, values.dimension, values.num_values), present)
            assert isinstance(flags, FixedWidth)
            validity = flags.data
        return FixedSizeListValues(items, values.dimension, validity)
    if not values.num_values:
        return FixedWidth(
            np.zeros(-(-len(present) * values.bits_per_value // 8), np.uint8), values.bits_per_value, len(present)
        )
    return select_fixed(values, np.maximum(np.cumsum(present, dtype=np.int64) - 1, 0))


def copy_array(array: pa.Array) -> pa.Array:
    """Return the same values in memory of their own, without an offset.

    Arrow (26.0) takes wrong values from nested fixed-size lists that have an offset.
    """
    return pa.concat_arrays([array, array.slice(0, 0)])  # a single array would be returned without a copy


def buffer_bytes(array: pa.Array) -> int:
    """Return the full sizes of an array's buffers: at least `nbytes`, and cheaper to compute.

    `get_total_buffer_size` may be smaller: arrays of nulls share one buffer, which it counts once.
    """
    if pt.is_dictionary(array.type):
        return int(array.nbytes)  # `buffers` does not list those of the dictionary
    return sum([buffer.size for buffer in array.buffers() if buffer is not None])


def bits_per_value_of(arrow_type: pa.DataType) -> int:
    """Return the bits of a fixed-width type's values; raise `UnsupportedFeature` for any other type."""
    if pt.is_fixed_size_binary(arrow_type):
        return int(arrow_type.byte_width) * 8
    try:
        return int(arrow_type.bit_width)
    except ValueError:
        raise UnsupportedFeature(f"values of Arrow type {arrow_type} in a page") from None


def bitmap_of(validity: BoolArray | None) -> pa.Buffer | None:
    """Return validity as Arrow's bitmap."""
    return None if validity is None else pa.py_buffer(np.packbits(validity, bitorder="little"))


def validity_of(array: pa.Array) -> BoolArray | None:
    """Return which values of an array are not null; None if none is null."""
    bits = _validity_bits(array)
    return None if bits is None else np.unpackbits(bits, count=len(array), bitorder="little").view(np.bool_)


def _validity_bits(array: pa.Array) -> Uint8Array | None:
    if array.null_count == 0:
        return None
    if pt.is_null(array.type):
        return np.zeros(-(-len(array) // 8), np.uint8)
    bitmap = np.frombuffer(array.buffers()[0], np.uint8)
    return bits_of(bitmap, array.offset, array.offset + len(array))


def _items_of(values: FixedSizeListValues, item_type: pa.DataType) -> pa.Array:
    if isinstance(values.items, FixedWidth) and not values.items.bits_per_value and values.validity is not None:
        if values.validity.any():
            raise CorruptValues("items without bytes that are not null")
        return pa.nulls(values.items.num_values, item_type)
    items = array_of(values.items, item_type)
    if values.validity is None:
        return items
    buffers: list[Any] = [pa.py_buffer(values.validity), *items.buffers()[1:]]
    if pt.is_fixed_size_list(item_type):
        return pa.Array.from_buffers(item_type, len(items), buffers[:1], children=[items.values])
    return pa.Array.from_buffers(item_type, len(items), buffers)


def _variable_values(array: pa.Array) -> VariableWidth:
    buffers = array.buffers()
    wide = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
    dtype: Any = np.dtype("<i8") if wide else np.dtype("<i4")
    if buffers[1] is None or not len(array):
        return VariableWidth(np.zeros(len(array) + 1, dtype), np.empty(0, np.uint8))
    offsets: Any = np.frombuffer(buffers[1], dtype)[array.offset : array.offset + len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.empty(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)[first:last]
    return VariableWidth(offsets - offsets[:1] if first else offsets, data)


def _is_utf8(values: VariableWidth) -> bool:
    """Return whether all byte strings, also those under nulls, are UTF-8; ASCII is recognised quickly.

    The strings are checked as one. All are UTF-8 if their concatenation is, and no string begins inside a character.
    """
    data = values.data[: values.size_bytes]
    if not len(data) or data.view(np.int8).min() >= 0:
        return True
    whole = [None, pa.py_buffer(np.array([0, len(data)], np.int64)), pa.py_buffer(data)]
    try:
        pa.Array.from_buffers(pa.large_string(), 1, whole).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return not (data.take(values.offsets[:-1], mode="clip") & 0xC0 == 0x80).any()


def _offsets_for(offsets: OffsetArray, arrow_type: pa.DataType) -> OffsetArray:
    if pt.is_large_string(arrow_type) or pt.is_large_binary(arrow_type):
        return offsets.astype(np.int64, copy=False)
    if int(offsets[-1]) > _MAX_I32:
        raise ReadTooLarge(f"more than 2 GiB in one array of {arrow_type}: read fewer rows at a time")
    return offsets.astype(np.int32, copy=False)


def _mismatch(values: Values, arrow_type: pa.DataType) -> CorruptValues:
    form = f"{values.bits_per_value}-bit values" if isinstance(values, FixedWidth) else type(values).__name__
    return CorruptValues(f"{form} in a column of {arrow_type}")
