"""Split nested Arrow types and arrays into a node and its children, and put them together again.

A struct's children are its fields. A list has one child, its items; a map has one child, its entries, which are structs
of key and value. Slices are resolved: the children of a sliced array hold only the values of the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow.type_kinds import is_any_list
from lance_ops.core.arrow.without_pandas import numbers_of
from lance_ops.core.ndarrays import Int64Array

__all__ = ["child_fields", "children_of", "convert_leaves", "items_of", "with_child_fields", "with_children"]


def child_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    """Return the fields of a type's children; none for a leaf. An extension type is a leaf."""
    if pt.is_struct(arrow_type):
        return list(arrow_type)
    if pt.is_map(arrow_type):
        return [pa.field("entries", pa.struct([arrow_type.key_field, arrow_type.item_field]), nullable=False)]
    if is_any_list(arrow_type):
        return [arrow_type.value_field]
    return []


def with_child_fields(arrow_type: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """Return a nested type of the same kind with other children."""
    if pt.is_struct(arrow_type):
        return pa.struct(list(fields))
    (child,) = fields
    if pt.is_map(arrow_type):
        return pa.map_(child.type.field(0), child.type.field(1), arrow_type.keys_sorted)
    if pt.is_fixed_size_list(arrow_type):
        return pa.list_(child, arrow_type.list_size)
    return pa.large_list(child) if pt.is_large_list(arrow_type) else pa.list_(child)


def children_of(array: pa.Array) -> list[pa.Array]:
    """Return a nested array's children, values under nulls included."""
    if pt.is_struct(array.type):
        return [array.field(index) for index in range(array.type.num_fields)]
    if pt.is_fixed_size_list(array.type):
        size = array.type.list_size
        return [array.values.slice(array.offset * size, len(array) * size)]
    return [items_of(array)[1]]


def with_children(array: pa.Array, children: Sequence[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    """Return an array of `arrow_type`, of the same kind, with the nulls and list lengths of `array`."""
    buffers: list[Any] = [pc.is_valid(array).buffers()[1] if array.null_count else None]
    if not (pt.is_struct(arrow_type) or pt.is_fixed_size_list(arrow_type)):
        offsets = items_of(array)[0].astype(np.int64 if pt.is_large_list(arrow_type) else np.int32)
        buffers.append(pa.py_buffer(offsets))
    return pa.Array.from_buffers(arrow_type, len(array), buffers, children=list(children))


def convert_leaves(
    array: pa.Array,
    given: pa.Field,
    wanted: pa.Field,
    is_leaf: Callable[[pa.Field], bool],
    convert: Callable[[pa.Array, pa.Field, pa.Field], pa.Array],
) -> pa.Array:
    """Return an array of the field `given` with its parts converted for which `is_leaf(wanted part)` is true.

    Children of structs correspond by name, children of lists and maps by position. Parts of different kinds are left
    unchanged.
    """
    if is_leaf(wanted):
        return convert(array, given, wanted)
    targets = child_fields(wanted.type)
    if not targets or not _same_kind(array.type, wanted.type):
        return array
    by_name = {child.name: child for child in targets}
    children, fields = [], []
    for position, (child, field) in enumerate(zip(children_of(array), child_fields(array.type), strict=True)):
        target = by_name.get(field.name) if pt.is_struct(array.type) else targets[position]
        converted = child if target is None else convert_leaves(child, field, target, is_leaf, convert)
        children.append(converted)
        fields.append(target if target is not None and is_leaf(target) else field.with_type(converted.type))
    return with_children(array, children, with_child_fields(array.type, fields))


def items_of(array: pa.Array) -> tuple[Int64Array, pa.Array]:
    """Return a list array's offsets, shifted to begin at 0, and its items."""
    offsets = numbers_of(array.offsets).astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return offsets - first if first else offsets, array.values.slice(first, last - first)


def _same_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether both types are structs, both maps, or both lists of any kind."""
    return any(kind(given) and kind(wanted) for kind in (pt.is_struct, pt.is_map, is_any_list))
