"""The one place that decides how a page's values are laid out and encoded.

A choice depends on the values, on the field's options and on the file version, and on nothing else, so that the same
input always makes the same file.
"""

from __future__ import annotations

from enum import Enum

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.contract import Encoding
from lance_ops.encodings.fixed_size_list import FixedSizeListEncoding
from lance_ops.encodings.flat import FlatEncoding
from lance_ops.encodings.options import NO_OPTIONS, EncodingOptions
from lance_ops.encodings.values import FixedSizeListValues, FixedWidth, PackedValues, Values, VariableWidth
from lance_ops.encodings.variable import VariableEncoding

__all__ = ["Structure", "choose_block", "choose_mini_block", "choose_structure", "choose_zipped"]

# A value of this many bytes would leave too few values in a chunk.
_LARGE_VALUE_BYTES = 256


class Structure(Enum):
    """How a page lays its values out."""

    MINI_BLOCK = "miniblock"
    FULL_ZIP = "fullzip"


def choose_structure(values: Values, options: EncodingOptions = NO_OPTIONS) -> Structure:
    """Choose the layout of a page: full-zip when a value can be large, mini-block otherwise."""
    if options.structural_encoding is not None:
        return Structure(options.structural_encoding)
    return Structure.FULL_ZIP if _largest_value_bytes(values) >= _LARGE_VALUE_BYTES else Structure.MINI_BLOCK


def choose_mini_block(values: Values, options: EncodingOptions, version: FileVersion) -> Encoding:
    """Choose the encoding of a mini-block page's values."""
    return _plain(values)


def choose_zipped(values: Values, options: EncodingOptions, version: FileVersion) -> Encoding:
    """Choose the encoding of a full-zip page's values."""
    return _plain(values)


def choose_block(values: Values, options: EncodingOptions, version: FileVersion) -> Encoding:
    """Choose the encoding of levels or of a dictionary's entries."""
    return _plain(values)


def _plain(values: Values) -> Encoding:
    if isinstance(values, FixedWidth):
        return FlatEncoding(values.bits_per_value)
    if isinstance(values, VariableWidth):
        return VariableEncoding(values.bits_per_offset)
    if isinstance(values, FixedSizeListValues):
        items = _plain(values.items)
        assert isinstance(items, FlatEncoding | FixedSizeListEncoding)
        return FixedSizeListEncoding(values.dimension, values.validity is not None, items)
    raise UnsupportedFeature("packed structs")


def _largest_value_bytes(values: Values) -> float:
    if isinstance(values, VariableWidth):
        return int(values.lengths().max()) if values.num_values else 0
    if isinstance(values, PackedValues):
        return sum(_largest_value_bytes(child) for child in values.children)
    if isinstance(values, FixedSizeListValues):
        return values.dimension * _largest_value_bytes(values.items)
    return values.bits_per_value / 8
