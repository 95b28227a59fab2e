"""Arrow columns taken apart to leaves: the reverse of `assemble`.

Nothing is copied but offsets that do not begin at 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import child_fields, children_of, items_of, with_children
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.schema import Field
from lance_ops.file.arrays import validity_of
from lance_ops.file.leaves import is_leaf
from lance_ops.file.v2_1.layers import FixedLists, Items, Layer, Lists
from lance_ops.file.v2_1.layouts import LeafRows

__all__ = ["shred", "storage_of"]


def shred(field: Field, array: pa.Array) -> list[LeafRows]:
    """Return the rows of every leaf of a column, in pre-order.

    The array has the field's storage type. Raises `SchemaMismatch` for a null where the schema has none.
    """
    return list(_shred(field, array, ()))


def storage_of(array: pa.Array, field: Field) -> pa.Array:
    """Return a column as its field's storage type: extension types, nested ones too, and views replaced.

    Raises `SchemaMismatch` if the types differ in more than that.
    """
    wanted = field.arrow_type
    if array.type.equals(wanted):
        return array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not array.type.equals(wanted) and not _same_values(array.type, wanted):
        raise SchemaMismatch(f"column {field.name!r} is {array.type} in the data, {wanted} in the schema")
    return array if array.type.equals(wanted) else _retype(array, wanted)


def _same_values(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether two types differ only in extension types, views, and names and nullability of list items."""
    if isinstance(given, pa.BaseExtensionType):
        given = given.storage_type
    if given.equals(wanted):
        return True
    if pt.is_string_view(given) or pt.is_binary_view(given):
        return bool(pt.is_string(wanted) if pt.is_string_view(given) else pt.is_binary(wanted))
    if given.id != wanted.id or given.num_fields != wanted.num_fields or not pt.is_nested(given):
        return False
    if pt.is_fixed_size_list(given) and given.list_size != wanted.list_size:
        return False
    pairs = [(given.field(i), wanted.field(i)) for i in range(given.num_fields)]
    return all(_same_values(a.type, b.type) and (not pt.is_struct(given) or a.name == b.name) for a, b in pairs)


def _retype(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Rebuild an array of the same values under another type; only views are copied."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type.equals(wanted):
        return array
    if pt.is_string_view(array.type) or pt.is_binary_view(array.type):
        return array.cast(wanted)
    pairs = zip(children_of(array), child_fields(wanted), strict=True)
    return with_children(array, [_retype(child, field.type) for child, field in pairs], wanted)


def _shred(field: Field, array: pa.Array, outer: tuple[Layer, ...]) -> Iterator[LeafRows]:
    if array.null_count and not field.nullable and not _null_outside(array, outer):
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


def _null_outside(array: pa.Array, outer: tuple[Layer, ...]) -> bool:
    """Return whether some layer around has nulls, below which a child may have any."""
    return any(layer.validity is not None for layer in outer)
