"""Fields of structs that a source leaves out: an updated row keeps its own, as it keeps columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = ["lacks_struct_fields", "with_missing_fields_kept"]


def lacks_struct_fields(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a struct of the source lacks a field of the table's, at any depth outside of lists."""
    if not (pt.is_struct(given) and pt.is_struct(wanted)):
        return False
    return any(
        given.get_field_index(field.name) < 0 or lacks_struct_fields(given.field(field.name).type, field.type)
        for field in wanted
    )


def with_missing_fields_kept(new: pa.StructArray, old: pa.StructArray, given: pa.DataType) -> pa.StructArray:
    """Return `new` with the values of `old` for the fields that `given`, the source's own type, does not have.

    Both arrays have the table's type. A struct is null where both are: one that is null in the source makes the fields
    null that the source has, and no other, as in the reference.
    """
    children = [
        _kept_or_new(field, theirs, mine, given)
        for field, theirs, mine in zip(new.type, new.flatten(), old.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(new.type), mask=pc.and_(new.is_null(), old.is_null()))


def _kept_or_new(field: pa.Field, new: pa.Array, old: pa.Array, given: pa.DataType) -> pa.Array:
    if given.get_field_index(field.name) < 0:
        return old
    inner = given.field(field.name).type
    return with_missing_fields_kept(new, old, inner) if lacks_struct_fields(inner, field.type) else new
