"""Assemble Arrow columns from the rows of their leaves: structs from their children, lists from their items.

All leaves below a struct or list repeat its layer; that of the first leaf is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import new_array
from lance_ops.core.errors import ReadTooLarge
from lance_ops.core.schema import Field
from lance_ops.encodings import CorruptValues, check
from lance_ops.file.arrow_values import bitmap_of
from lance_ops.file.leaves import is_leaf
from lance_ops.file.v2_1.layers import FixedLists, Items, Layer, Lists
from lance_ops.file.v2_1.layouts import LeafRows

__all__ = ["assemble", "concat_rows"]

_MAX_I32 = np.iinfo(np.int32).max


def assemble(field: Field, leaves: Sequence[LeafRows]) -> pa.Array:
    """Return a column from its leaves, given in pre-order, each with the same rows."""
    array, rest = _build(field, leaves, 0)
    assert not rest
    return array


def _build(field: Field, leaves: Sequence[LeafRows], depth: int) -> tuple[pa.Array, Sequence[LeafRows]]:
    if is_leaf(field):
        values = leaves[0].values
        return values if values.type.equals(field.arrow_type) else values.cast(field.arrow_type), leaves[1:]
    layer = leaves[0].layers[depth]
    children: list[pa.Array] = []
    rest = leaves
    for child in field.children:
        array, rest = _build(child, rest, depth + 1)
        children.append(array)
    expected = _num_children(layer)
    check(all(len(child) == expected for child in children), f"leaves of column {field.name!r} differ in length")
    bitmap = bitmap_of(layer.validity)
    arrow_type = field.arrow_type
    if not isinstance(layer, Lists):
        return pa.Array.from_buffers(arrow_type, layer.length, [bitmap], children=children), rest
    if pt.is_large_list(arrow_type):
        offsets = pa.py_buffer(layer.offsets)
    elif int(layer.offsets[-1]) > _MAX_I32:
        raise ReadTooLarge(f"more than 2^31 items in one array of {arrow_type}: read fewer rows at a time")
    else:
        narrow = new_array(len(layer.offsets), np.int32)
        narrow[:] = layer.offsets
        offsets = pa.py_buffer(narrow)
    if pt.is_map(arrow_type):  # Arrow aborts the process for a map with null keys
        (entries,) = children
        check(not entries.null_count and not entries.field(0).null_count, f"nulls among the keys of {field.name!r}")
    return pa.Array.from_buffers(arrow_type, layer.length, [bitmap, offsets], children=children), rest


def _num_children(layer: Layer) -> int:
    if isinstance(layer, Lists):
        return int(layer.offsets[-1])
    return layer.length * (layer.dimension if isinstance(layer, FixedLists) else 1)


def concat_rows(parts: Sequence[LeafRows]) -> LeafRows:
    """Concatenate rows of one leaf."""
    if len(parts) == 1:
        return parts[0]
    layers = tuple(_concat_layers(layers) for layers in zip(*(part.layers for part in parts), strict=True))
    return LeafRows(layers, pa.concat_arrays([part.values for part in parts]))


def _concat_layers(layers: Sequence[Layer]) -> Layer:
    first = layers[0]
    validity = None
    if any(layer.validity is not None for layer in layers):
        validity = np.concatenate(
            [np.ones(layer.length, np.bool_) if layer.validity is None else layer.validity for layer in layers]
        )
    if isinstance(first, Lists):
        offsets = [np.zeros(1, np.int64)]
        total = 0
        for layer in layers:
            if not isinstance(layer, Lists):
                raise CorruptValues("a layer that is of lists in only some pages")
            offsets.append(layer.offsets[1:] + total)
            total += int(layer.offsets[-1])
        return Lists(np.concatenate(offsets), validity)
    length = sum(layer.length for layer in layers)
    return FixedLists(length, first.dimension, validity) if isinstance(first, FixedLists) else Items(length, validity)
