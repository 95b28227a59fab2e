"""Which fields of a 2.0 file have columns, and how values that share a column are projected."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.schema import Field
from lance_ops.file.leaves import is_packed

__all__ = ["columns_of_field", "fields_of_rows", "is_single_column", "project"]


def columns_of_field(field: Field) -> list[Field]:
    """Return the fields that have columns, in column order: all whose values do not lie in a parent's column."""
    if is_single_column(field):
        return [field]
    return [field, *(node for child in field.children for node in columns_of_field(child))]


def is_single_column(field: Field) -> bool:
    """Return whether one column holds a field and all fields below it; structs among them are packed."""
    return is_packed(field) or field.logical_type.startswith("fixed_size_list:")


def project(array: pa.Array, stored: Field, wanted: Field) -> pa.Array:
    """Return the wanted fields, known by their ids, of values that share a column."""
    if not wanted.children or array.type.equals(wanted.arrow_type):
        return array
    if pt.is_struct(array.type):
        places = {child.id: index for index, child in enumerate(stored.children)}
        pairs = [(places[child.id], child) for child in wanted.children]
        children = [project(array.field(place), stored.children[place], child) for place, child in pairs]
    else:
        children = [project(array.values, stored.children[0], wanted.children[0])]
    return pa.Array.from_buffers(wanted.arrow_type, len(array), array.buffers()[:1], children=children)


def fields_of_rows(field: Field) -> list[Field]:
    """Return the fields of a column whose pages count rows and hold values: structs are replaced by their children."""
    if field.logical_type == "struct" and not is_packed(field):
        return [node for child in field.children for node in fields_of_rows(child)]
    return [field]
