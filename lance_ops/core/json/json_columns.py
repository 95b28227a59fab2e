"""Convert JSON columns between the text that users see and the JSONB that files hold.

A JSON field has the logical type `json`, whose storage is large_binary marked `lance.json`; users see Arrow's own JSON
type. JSON fields may stand at any depth in structs, lists and maps.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    child_fields,
    children_of,
    convert_leaves,
    is_text_or_view,
    with_child_fields,
    with_children,
)
from lance_ops.core.errors import CorruptFile, InvalidInput, SchemaMismatch
from lance_ops.core.json.jsonb import CorruptJsonb, decode, encode

__all__ = [
    "ARROW_JSON",
    "JSON_MARK",
    "holds_json",
    "is_json",
    "json_to_storage",
    "json_to_text",
    "table_to_text",
    "text_field",
    "text_schema",
]

ARROW_JSON = "arrow.json"
"""The name of Arrow's JSON extension type, whose storage is text."""

JSON_MARK = "lance.json"
"""The extension name that marks stored JSONB."""

_NAME = EXTENSION_NAME.encode()
_METADATA = EXTENSION_METADATA.encode()


def is_json(field: pa.Field) -> bool:
    """Return whether a storage field holds JSONB."""
    return pt.is_large_binary(field.type) and (field.metadata or {}).get(_NAME) == JSON_MARK.encode()


def text_schema(schema: pa.Schema, json_type: pa.DataType | None = None) -> pa.Schema:
    """Return a storage schema with JSON as text, of type `json_type` or, by default, Arrow's JSON type."""
    return pa.schema([text_field(field, json_type) for field in schema], schema.metadata)


def text_field(field: pa.Field, json_type: pa.DataType | None = None) -> pa.Field:
    """Return a storage field with JSON, at any depth, as text; see `text_schema`."""
    if is_json(field):
        left = {key: value for key, value in field.metadata.items() if key not in (_NAME, _METADATA)}
        return pa.field(field.name, json_type or pa.json_(), field.nullable, left or None)
    if not holds_json(field):
        return field
    children = [text_field(child, json_type) for child in child_fields(field.type)]
    return field.with_type(with_child_fields(field.type, children))


def json_to_text(column: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    """Return a column of the storage field `field` with its JSON as text of Arrow's JSON type.

    Raises `CorruptFile` naming `where` and the column for bytes that are not JSONB.
    """
    if not holds_json(field):
        return column
    try:
        chunks = [_decoded(chunk, field) for chunk in column.chunks]
    except CorruptJsonb as error:
        raise CorruptFile(where, f"JSON column {field.name!r}", str(error)) from error
    return pa.chunked_array(chunks, text_field(field).type)


def table_to_text(table: pa.Table, where: str) -> pa.Table:
    """Return a table of storage types with the JSON in every column as text; see `json_to_text`."""
    columns = [json_to_text(column, field, where) for column, field in zip(table.columns, table.schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=text_schema(table.schema)) if columns else table


def json_to_storage(array: pa.Array, given: pa.Field, field: pa.Field) -> pa.Array:
    """Return values of the field `given`, with text converted to JSONB where the storage field `field` is JSON.

    JSONB and values that are not JSON stay unchanged. Raises `SchemaMismatch` if a JSON field is given values of
    another type, `InvalidInput` for text that is not JSON.
    """
    return convert_leaves(array, given, field, is_json, _documents) if holds_json(field) else array


def holds_json(field: pa.Field) -> bool:
    """Return whether a storage field is JSON or has a JSON field below it."""
    return is_json(field) or any(holds_json(child) for child in child_fields(field.type))


def _decoded(array: pa.Array, field: pa.Field) -> pa.Array:
    if is_json(field):
        texts = [None if data is None else decode(data) for data in array.to_pylist()]
        return pa.json_().wrap_array(pa.array(texts, pa.string()))
    if not holds_json(field):
        return array
    pairs = zip(children_of(array), child_fields(field.type), strict=True)
    return with_children(array, [_decoded(*pair) for pair in pairs], text_field(field).type)


def _documents(array: pa.Array, given: pa.Field, _: pa.Field) -> pa.Array:
    if is_json(given):
        return array
    if isinstance(array, pa.ExtensionArray) and given.type.extension_name == ARROW_JSON:
        array = array.storage
    if not (pt.is_null(array.type) or is_text_or_view(array.type)):
        raise SchemaMismatch(f"column {given.name!r} is JSON in the table and {given.type} in the data")
    try:
        documents = [None if text is None else encode(text) for text in array.to_pylist()]
    except InvalidInput as error:
        raise InvalidInput(f"column {given.name!r}: {error}") from error
    return pa.array(documents, pa.large_binary())
