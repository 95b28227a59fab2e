"""Shred an Arrow column into its leaves and the layers around them: the reverse of `assemble`.

Only offsets that do not begin at 0 are copied.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import items_of
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.schema import Field
from lance_ops.file.arrow_values import validity_of
from lance_ops.file.leaves import is_leaf
from lance_ops.file.v2_1.layers import FixedLists, Items, Layer, Lists
from lance_ops.file.v2_1.layouts import LeafRows

__all__ = ["shred"]


def shred(field: Field, array: pa.Array) -> list[LeafRows]:
    """Return the rows of every leaf of a column, in pre-order.

    The array has the field's storage type. Raises `SchemaMismatch` for a null where the schema has none.
    """
    if is_leaf(field) and not array.null_count:
        return [LeafRows((), array)]
    return list(_shred(field, array, ()))


def _shred(field: Field, array: pa.Array, outer: tuple[Layer, ...]) -> Iterator[LeafRows]:
    if array.null_count and not field.nullable and not _is_in_nullable_layer(outer):
        raise SchemaMismatch(f"column {field.name!r} is not nullable and the data has {array.null_count} nulls in it")
    if is_leaf(field):
        yield LeafRows(outer, array)
        return
    validity = validity_of(array)
    if pt.is_struct(array.type):
        for index, child in enumerate(field.children):
            yield from _shred(child, array.field(index), (*outer, Items(len(array), validity)))
        return
    (child,) = field.children
    if pt.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        yield from _shred(child, items, (*outer, FixedLists(len(array), size, validity)))
        return
    offsets, items = items_of(array)
    yield from _shred(child, items, (*outer, Lists(offsets, validity)))


def _is_in_nullable_layer(outer: tuple[Layer, ...]) -> bool:
    """Return whether a layer around has nulls: the values below a null may be null whatever the schema says."""
    return any(layer.validity is not None for layer in outer)
