"""Keep a row's values of struct fields that the source of an update lacks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = ["lacks_struct_fields", "with_missing_fields_kept"]


def lacks_struct_fields(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether `given` lacks a field of `wanted`, in nested structs too, but not inside lists."""
    if not (pt.is_struct(given) and pt.is_struct(wanted)):
        return False
    return any(
        given.get_field_index(field.name) < 0 or lacks_struct_fields(given.field(field.name).type, field.type)
        for field in wanted
    )


def with_missing_fields_kept(new: pa.StructArray, old: pa.StructArray, given: pa.DataType) -> pa.StructArray:
    """Return `new` with the values of `old` for the fields that `given`, the source's type, does not have.

    Both arrays have the table's type. A struct is null where both are null. A struct that is null in the source makes
    only those fields null that the source has, as in the reference.
    """
    children = [
        _child(field, from_source, from_table, given)
        for field, from_source, from_table in zip(new.type, new.flatten(), old.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(new.type), mask=pc.and_(new.is_null(), old.is_null()))


def _child(field: pa.Field, new: pa.Array, old: pa.Array, given: pa.DataType) -> pa.Array:
    if given.get_field_index(field.name) < 0:
        return old
    inner = given.field(field.name).type
    return with_missing_fields_kept(new, old, inner) if lacks_struct_fields(inner, field.type) else new
