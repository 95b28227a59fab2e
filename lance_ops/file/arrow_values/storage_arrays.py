"""Replace extension types and views of an Arrow column by the type that its field stores."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import child_fields, children_of, with_children
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.schema import Field

__all__ = ["storage_of"]


def storage_of(array: pa.Array, field: Field) -> pa.Array:
    """Return a column as its field's storage type; extension types and views are replaced, nested ones too.

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
    """Return the same values under another type; only views are copied."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type.equals(wanted):
        return array
    if pt.is_string_view(array.type) or pt.is_binary_view(array.type):
        return array.cast(wanted)
    pairs = zip(children_of(array), child_fields(wanted), strict=True)
    return with_children(array, [_retype(child, field.type) for child, field in pairs], wanted)
