"""Choose and apply the array encoding of a 2.0 page, by type and values, as the reference does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Uint8Array, Uint64Array, UnsignedArray
from lance_ops.encodings import NO_OPTIONS, EncodingOptions, FixedWidth, VariableWidth
from lance_ops.file.arrow_values import validity_of, values_of
from lance_ops.file.v2_0.binary import encode_binary
from lance_ops.file.v2_0.contract import PageBuffers
from lance_ops.file.v2_0.fixed import encode_flat
from lance_ops.file.v2_0.nullable import encode_nullable
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["encode_array", "encode_descriptors"]


_MIN_DICTIONARY_ROWS = 100
_MAX_DICTIONARY_ITEMS = 99
_FIRST_SAMPLE_ROWS = 128
_SAMPLE_GROWTH = 8
"""Each sample includes the samples before it, so that all samples together read a seventh more than every row."""


def encode_array(array: pa.Array, options: EncodingOptions, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode the values of a leaf; the array has a storage type and may have an offset."""
    validity = validity_of(array)
    if pt.is_null(array.type):
        return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
    if pt.is_dictionary(array.type):
        return _encode_dictionary(array, buffers)
    if pt.is_struct(array.type):
        return _encode_packed(array, validity, buffers)
    if is_text_or_bytes(array.type):
        if validity is not None and not validity.any():
            return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
        return _encode_strings(array, validity, options, buffers)
    return encode_nullable(validity, lambda target: _encode_values(array, target), buffers)


def encode_descriptors(positions: Uint64Array, sizes: Uint64Array, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode the positions and sizes of blobs."""
    structs = pa.StructArray.from_arrays([pa.array(positions), pa.array(sizes)], ["position", "size"])
    return _encode_packed(structs, None, buffers)


def _encode_values(array: pa.Array, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode values of a fixed-width type, or fixed-size lists, without their validity."""
    if pt.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = encode_array(array.values.slice(array.offset * size, len(array) * size), NO_OPTIONS, buffers)
        return pb.ArrayEncoding(fixed_size_list=pb.FixedSizeList(dimension=size, items=items))
    values = values_of(array)
    if not isinstance(values, FixedWidth):
        raise UnsupportedFeature(f"{array.type} in file version 2.0")
    return encode_flat(values, buffers)


def _encode_strings(
    array: pa.Array, validity: BoolArray | None, options: EncodingOptions, buffers: PageBuffers
) -> pb.ArrayEncoding:
    if options.compression is None and pt.is_string(array.type):  # the reference cannot read other types back
        dictionary = _as_dictionary(array)
        if dictionary is not None:
            positions = dictionary.indices.fill_null(-1).to_numpy() + 1  # 0 is a null
            return _dictionary(positions.astype(np.uint8), dictionary.dictionary, buffers)
    values = values_of(array)
    assert isinstance(values, VariableWidth)
    return encode_binary(values, validity, options, buffers)


def _as_dictionary(array: pa.Array) -> pa.DictionaryArray | None:
    """Return a dictionary if the distinct values are few; growing samples reject most columns by their first rows."""
    if len(array) < _MIN_DICTIONARY_ROWS:
        return None
    rows = _FIRST_SAMPLE_ROWS
    while True:
        encoded = array.slice(0, rows).dictionary_encode()
        if len(encoded.dictionary) > _MAX_DICTIONARY_ITEMS:
            return None
        if rows >= len(array):
            return encoded
        rows *= _SAMPLE_GROWTH


def _encode_dictionary(array: pa.Array, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode a column that is a dictionary in Arrow; a null is the position of a null item."""
    dictionary = array.dictionary
    if dictionary.null_count or len(dictionary) > len(array):
        array = array.dictionary_decode().dictionary_encode().cast(array.type)
        dictionary = array.dictionary
    width = array.type.index_type.bit_width
    keys = array.indices
    if keys.null_count:
        if len(dictionary) > np.iinfo(f"u{width // 8}").max:
            raise UnsupportedFeature(f"a dictionary of {len(dictionary)} values and nulls with {width}-bit keys")
        keys = keys.cast(pa.int64()).fill_null(len(dictionary))
        dictionary = pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])
    return _dictionary(keys.to_numpy().astype(f"<u{width // 8}"), dictionary, buffers)


def _dictionary(positions: UnsignedArray, items: pa.Array, buffers: PageBuffers) -> pb.ArrayEncoding:
    values = FixedWidth(positions.view(np.uint8), positions.dtype.itemsize * 8, len(positions))
    indices = encode_nullable(None, lambda target: encode_flat(values, target), buffers)
    stored = encode_items(items, buffers)
    return pb.ArrayEncoding(dictionary=pb.Dictionary(indices=indices, items=stored, num_dictionary_items=len(items)))


def encode_items(items: pa.Array, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode a dictionary's items, but not as another dictionary."""
    if not is_text_or_bytes(items.type):
        return encode_array(items, NO_OPTIONS, buffers)
    values = values_of(items)
    assert isinstance(values, VariableWidth)
    return encode_binary(values, validity_of(items), NO_OPTIONS, buffers)


def _encode_packed(array: pa.Array, validity: BoolArray | None, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode structs row by row."""
    if validity is not None:
        raise UnsupportedFeature("a null struct in file version 2.0 (use 2.1 or later)")
    columns = []
    inner = []
    for index in range(array.type.num_fields):
        child = array.field(index)
        bits, described = _packed_child(child)
        data = _flat_bytes(child)
        columns.append(data.reshape(len(array), bits // 8))
        inner.append(described)
    rows = np.concatenate(columns, axis=1).reshape(-1)
    return pb.ArrayEncoding(packed_struct=pb.PackedStruct(inner=inner, buffer=buffers.add(rows)))


def _packed_child(child: pa.Array) -> tuple[int, pb.ArrayEncoding]:
    """Return a child's bits and its description, which names a buffer that does not exist."""
    if child.null_count:
        raise UnsupportedFeature("a null inside a packed struct in file version 2.0")
    if pt.is_fixed_size_list(child.type):
        size = child.type.list_size
        bits, items = _packed_child(child.values.slice(child.offset * size, len(child) * size))
        described = pb.ArrayEncoding(fixed_size_list=pb.FixedSizeList(dimension=size, items=items))
        bits *= size
    else:
        if pt.is_dictionary(child.type) or pt.is_null(child.type):
            raise UnsupportedFeature(f"{child.type} in a packed struct in file version 2.0")
        values = values_of(child)
        if not isinstance(values, FixedWidth) or values.bits_per_value % 8:
            raise UnsupportedFeature(f"{child.type} in a packed struct in file version 2.0")
        bits = values.bits_per_value
        described = pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer()))
    return bits, pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=described)))


def _flat_bytes(child: pa.Array) -> Uint8Array:
    while pt.is_fixed_size_list(child.type):
        size = child.type.list_size
        child = child.values.slice(child.offset * size, len(child) * size)
    values = values_of(child)
    assert isinstance(values, FixedWidth)
    return values.data[: values.size_bytes]
