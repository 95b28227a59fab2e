"""Convert incoming Arrow data to a table's schema, or raise an error that names the field that does not fit.

Columns, and the fields of structs, are matched by name, in any order. A nullable one that is missing becomes null. A
type that differs is cast if no value changes (int32 to int64, a list to a fixed-size list, numbers to a dictionary of
them). Text becomes JSONB where the table has JSON. Everything else is a `SchemaMismatch`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core import arrow
from lance_ops.core.arrow import is_number, is_text_or_view
from lance_ops.core.blob_types import values_of_blobs
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.json import holds_json, json_to_storage

__all__ = ["conform_present_columns", "conform_to_schema"]


def conform_to_schema(data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `data` with exactly this (storage) schema; raise `SchemaMismatch` naming the field that does not fit."""
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    if table.schema.equals(schema, check_metadata=True) and not _has_wrong_nulls(table):
        return table
    _refuse_unknown_columns(table, schema)
    columns = [_column(table, field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def conform_present_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `table` with its columns in this schema's order and types; columns that it lacks stay missing."""
    _refuse_unknown_columns(table, schema)
    present = [field for field in schema if field.name in table.schema.names]
    return conform_to_schema(table, pa.schema(present, schema.metadata))


def _has_wrong_nulls(table: pa.Table) -> bool:
    """Return whether a column that its own schema declares non-nullable has nulls; Arrow does not check that."""
    return any(not field.nullable and table.column(at).null_count for at, field in enumerate(table.schema))


def _refuse_unknown_columns(table: pa.Table, schema: pa.Schema) -> None:
    extra = [name for name in table.schema.names if name not in schema.names]
    if extra:
        raise SchemaMismatch(
            f"column {extra[0]!r} is not in the table (which has {', '.join(schema.names)}): drop it or add the column"
        )


def _refuse_unknown_fields(path: str, given: pa.DataType, wanted: pa.DataType) -> None:
    """Raise `SchemaMismatch` for a field of a struct that the table does not have; Arrow's cast would drop it."""
    if pt.is_struct(given) and pt.is_struct(wanted):
        known = {field.name: field.type for field in wanted}
        for child in given:
            below = f"{path}.{child.name}"
            if child.name not in known:
                raise SchemaMismatch(
                    f"field {below!r} is not in the table (which has {', '.join(known) or 'none'} there): "
                    "drop it or add the field"
                )
            _refuse_unknown_fields(below, child.type, known[child.name])
        return
    for (name, inner), (_, wanted_inner) in zip(_items_of(given), _items_of(wanted), strict=False):
        _refuse_unknown_fields(f"{path}{name}", inner, wanted_inner)


def _items_of(kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Return the types of the items of a list, or of the keys and values of a map, each with what a path calls them."""
    if pt.is_map(kind):
        return [(".key", kind.key_type), (".value", kind.item_type)]
    return [("", kind.value_type)] if pt.is_nested(kind) and hasattr(kind, "value_type") else []


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    position = table.schema.get_field_index(field.name)
    if position < 0:
        if not field.nullable:
            raise SchemaMismatch(f"column {field.name!r} is missing from the data and the table allows no nulls in it")
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table.column(position)
    if holds_json(field):
        given = table.schema.field(position)
        parts = column.chunks or [column.combine_chunks()]
        column = pa.chunked_array([json_to_storage(part, given, field) for part in parts])
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if column.type != field.type:
        given = table.schema.field(position)
        column = pa.chunked_array(
            [values_of_blobs(part, given, field) for part in column.chunks or [column.combine_chunks()]]
        )
    if column.type != field.type:
        column = _cast(column, field)
    if not field.nullable and column.null_count:
        raise SchemaMismatch(f"column {field.name!r} holds {column.null_count} nulls and the table allows none in it")
    return column


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    _refuse_unknown_fields(field.name, column.type, field.type)
    if _loses_meaning(column.type, field.type):
        raise SchemaMismatch(f"column {field.name!r} is {field.type} in the table and {column.type} in the data")
    try:
        if pt.is_dictionary(field.type) and not pt.is_dictionary(column.type):
            return pa.chunked_array([arrow.as_dictionary(part, field.type) for part in column.chunks], field.type)
        between = arrow.type_between(column.type, field.type)
        return (column if between == column.type else column.cast(between)).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatch(
            f"column {field.name!r} is {field.type} in the table and {column.type} in the data: {error}"
        ) from error


def _loses_meaning(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Arrow would cast between different kinds of values, such as a number and a text."""

    def kind(data_type: pa.DataType) -> str:
        if pt.is_dictionary(data_type):
            data_type = data_type.value_type
        if pt.is_boolean(data_type) or pt.is_null(data_type):
            return str(data_type)
        if is_number(data_type):
            return "number"
        if is_text_or_view(data_type):
            return "text"
        if pt.is_date(data_type) or pt.is_timestamp(data_type):
            return "instant"
        return "other"

    return kind(given) != kind(wanted) and not pt.is_null(given)
