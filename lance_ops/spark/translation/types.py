"""Map a table's Arrow types to the types that Spark sees, and a Spark schema to the types of a new table.

The table's Arrow schema decides. Spark sees each column in the one shape that its Arrow transport accepts:

    in the table                                   in Spark                       on the way
    bool, int8-64, float32/64, decimal128,         the same                       -
    string, binary, date32, null, struct, map
    uint8, uint16, uint32, uint64                  int16, int32, int64,           widened
                                                   decimal(20, 0)
    float16                                        float32                        widened
    large_string, string_view, JSON                string                         -
    large_binary, binary_view, fixed_size_binary   binary                         the width is not kept
    bfloat16                                       binary                         its two bytes
    timestamp of any unit, with or without zone    us, UTC or without zone        ns cut to the us before
    time32, time64                                 time64[ns]                     -
    duration of any unit                           duration[us]                   ns cut towards zero
    date64                                         date32                         refused unless whole days
    decimal256(p, s)                               decimal128(min(p, 38), s)      refused where a value is too long
    dictionary                                     its values                     -
    list, large_list, fixed-size list              list of `element`              the size is not kept

Three hints in a field's metadata (`arrow.fixed-size-list.size`, `arrow.float16`, `arrow.bfloat16`) keep what the shape
loses. A read shows them to Spark, and a new table made from such a DataFrame gets the original types. Hints may also
come as `<column>.<hint>` properties. An append needs no hint, because rows are cast to the table's types. Bytes that
are marked as blobs become `large_binary` in a new table, as other writers store them. The mark is the metadata
`lance-encoding:blob` = `true`, or the hint `lance.encoding` = `blob`, which writes that metadata.

This module does not import pyspark. Spark's own Arrow schema (`pyspark.sql.pandas.types`) follows from the shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import EXTENSION_METADATA, EXTENSION_NAME
from lance_ops.core.blob_types import BLOB_KEY
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.schema import BFLOAT16

__all__ = [
    "BFLOAT16_HINT",
    "ENCODING_HINT",
    "FIXED_SIZE_HINT",
    "FLOAT16_HINT",
    "is_hint",
    "keep_types",
    "schema_for_spark",
    "schema_from_spark",
]

FIXED_SIZE_HINT = "arrow.fixed-size-list.size"
FLOAT16_HINT = "arrow.float16"
BFLOAT16_HINT = "arrow.bfloat16"
ENCODING_HINT = "lance.encoding"

_HINTS = (FIXED_SIZE_HINT, FLOAT16_HINT, BFLOAT16_HINT, ENCODING_HINT)
_BLOB = "blob"
_SPARK_METADATA = b"SPARK::metadata::json"
_MAX_PRECISION = 38

_SHAPES: dict[pa.DataType, pa.DataType] = {
    **{
        kept: kept
        for kept in (
            pa.null(),
            pa.bool_(),
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.binary(),
            pa.date32(),
        )
    },
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def schema_for_spark(schema: pa.Schema) -> pa.Schema:
    """Return a table's schema in Spark's shape, with hints for what the shape loses.

    Raises `UnsupportedFeature` naming the column whose type has no shape in Spark.
    """
    return pa.schema([_field_for_spark(field, field.name) for field in schema])


def schema_from_spark(
    schema: pa.Schema, properties: Mapping[str, str] | None = None, *, keep_not_null: bool = False
) -> pa.Schema:
    """Return the schema of a new table for rows of this Spark schema.

    Hints come from `properties` with keys `<column>.<hint>`, matched without case, or else from the fields' metadata.
    All columns are nullable, because Spark derives nullability from plans, and the next DataFrame's plan may differ.
    With `keep_not_null` columns of `schema` that are not nullable stay so; struct fields do not.
    Raises `InvalidInput` for a hint that names no column or does not fit the column's type.
    """
    hints = {key.lower(): value for key, value in (properties or {}).items() if is_hint(key)}
    fields = [_field_from_spark(field, field.name, hints) for field in schema]
    if hints:
        raise InvalidInput(f"no column for {', '.join(sorted(hints))}: the columns are {', '.join(schema.names)}")
    if keep_not_null:
        fields = [field.with_nullable(each.nullable) for field, each in zip(fields, schema, strict=True)]
    return pa.schema(fields)


def keep_types(new: pa.Schema, old: pa.Schema) -> pa.Schema:
    """Return `new`, with the type and metadata from `old` for each column that looks the same in Spark."""

    def field_of(field: pa.Field) -> pa.Field:
        position = old.get_field_index(field.name)
        if position < 0:
            return field
        before = old.field(position)
        same = _bare(_shape(before.type, before.name)) == _bare(_shape(field.type, field.name))
        # Spark keeps this type, so only a hint can have changed it.
        return before if same and _marks(field) in ({}, _marks(before)) else field

    return pa.schema([field_of(field) for field in new])


def is_hint(property_name: str) -> bool:
    """Whether a table property is a hint about a column's type."""
    return property_name.lower().endswith(tuple(f".{hint}" for hint in _HINTS))


def _field_for_spark(field: pa.Field, path: str) -> pa.Field:
    metadata = {**_plain_metadata(field), **_hints(field)}
    arrow_metadata = dict(field.metadata or {})
    arrow_metadata.pop(_SPARK_METADATA, None)
    if metadata:
        arrow_metadata[_SPARK_METADATA] = json.dumps(metadata).encode()
    return pa.field(field.name, _shape(field.type, path), field.nullable, arrow_metadata or None)


def _shape(arrow_type: pa.DataType, path: str) -> pa.DataType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    simple = _SHAPES.get(arrow_type)
    if simple is not None:
        return simple
    if pt.is_fixed_size_binary(arrow_type):
        return pa.binary()
    if pt.is_timestamp(arrow_type):
        return pa.timestamp("us", "UTC" if arrow_type.tz else None)
    if pt.is_time(arrow_type):
        return pa.time64("ns")
    if pt.is_duration(arrow_type):
        return pa.duration("us")
    if pt.is_decimal(arrow_type) and 0 <= arrow_type.scale <= min(arrow_type.precision, _MAX_PRECISION):
        return pa.decimal128(min(arrow_type.precision, _MAX_PRECISION), arrow_type.scale)
    if pt.is_dictionary(arrow_type):
        return _shape(arrow_type.value_type, path)
    if pt.is_struct(arrow_type):
        return pa.struct([_field_for_spark(child, f"{path}.{child.name}") for child in arrow_type])
    if pt.is_map(arrow_type):
        key, item = arrow_type.key_field, arrow_type.item_field
        return pa.map_(
            pa.field("key", _shape(key.type, f"{path}.{key.name}"), nullable=False),
            pa.field("value", _shape(item.type, f"{path}.{item.name}"), item.nullable),
        )
    if _is_any_list(arrow_type):
        value = arrow_type.value_field
        return pa.list_(pa.field("element", _shape(value.type, f"{path}.{value.name}"), value.nullable))
    raise UnsupportedFeature(f"Arrow type {arrow_type} in Spark", f"column {path!r}")


def _bare(shape: pa.DataType) -> pa.DataType:
    """Return a shape without nullability and fields' metadata, which differ between Spark's plans."""
    if pt.is_struct(shape):
        return pa.struct([pa.field(child.name, _bare(child.type)) for child in shape])
    if pt.is_map(shape):
        return pa.map_(_bare(shape.key_type), _bare(shape.item_type))
    return pa.list_(_bare(shape.value_type)) if pt.is_list(shape) else shape


def _is_any_list(arrow_type: pa.DataType) -> bool:
    return bool(
        pt.is_list(arrow_type)
        or pt.is_large_list(arrow_type)
        or pt.is_fixed_size_list(arrow_type)
        or pt.is_list_view(arrow_type)
        or pt.is_large_list_view(arrow_type)
    )


def _hints(field: pa.Field) -> dict[str, Any]:
    arrow_type = field.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    hints: dict[str, Any] = {}
    if pt.is_fixed_size_list(arrow_type):
        hints[FIXED_SIZE_HINT] = arrow_type.list_size
    item = arrow_type.value_field if _is_any_list(arrow_type) else field
    if pt.is_float16(item.type):
        hints[FLOAT16_HINT] = "true"
    if _is_bfloat16(item):
        hints[BFLOAT16_HINT] = "true"
    return hints


def _marks(field: pa.Field) -> dict[str, Any]:
    """Return the field's hints, and whether its metadata marks its bytes as blobs."""
    return _hints(field) | ({ENCODING_HINT: _BLOB} if _is_marked_as_blob(field.metadata or {}) else {})


def _is_marked_as_blob(metadata: Mapping[bytes, bytes]) -> bool:
    return metadata.get(BLOB_KEY.encode()) == b"true"


def _is_bfloat16(field: pa.Field) -> bool:
    """Return whether a field is of the extension type, or of its bytes, which its metadata names."""
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == BFLOAT16)
    return (field.metadata or {}).get(EXTENSION_NAME.encode()) == BFLOAT16.encode()


def _plain_metadata(field: pa.Field) -> dict[str, Any]:
    """Return the field's metadata for Spark.

    The name of an extension type is left out, since Spark sees only its storage.
    """
    return {
        key.decode(): value.decode("utf-8", "replace")
        for key, value in (field.metadata or {}).items()
        if key not in (_SPARK_METADATA, EXTENSION_NAME.encode(), EXTENSION_METADATA.encode())
    }


def _field_from_spark(field: pa.Field, path: str, hints: dict[str, str]) -> pa.Field:
    arrow_metadata = dict(field.metadata or {})
    spark_metadata: dict[str, Any] = json.loads(arrow_metadata.pop(_SPARK_METADATA, b"{}"))
    size = hints.pop(f"{path}.{FIXED_SIZE_HINT}".lower(), spark_metadata.pop(FIXED_SIZE_HINT, None))
    half = hints.pop(f"{path}.{FLOAT16_HINT}".lower(), spark_metadata.pop(FLOAT16_HINT, None))
    brain = hints.pop(f"{path}.{BFLOAT16_HINT}".lower(), spark_metadata.pop(BFLOAT16_HINT, None))
    encoding = hints.pop(f"{path}.{ENCODING_HINT}".lower(), spark_metadata.pop(ENCODING_HINT, None))
    arrow_type = _table_type(field.type, path, hints)
    if str(half).lower() == "true":
        arrow_type = _with_float16(arrow_type, path)
    if str(brain).lower() == "true":
        made = _with_bfloat16(pa.field(field.name, arrow_type), path)
        arrow_type = made.type
        arrow_metadata |= made.metadata or {}
    if size is not None:
        arrow_type = _with_size(arrow_type, str(size), path)
    # Keys with two underscores are Spark's own notes about a plan (aliases, CHAR lengths), not the user's.
    for key, value in spark_metadata.items():
        if not key.startswith("__"):
            arrow_metadata[key.encode()] = (value if isinstance(value, str) else json.dumps(value)).encode()
    if encoding is not None:
        _check_encoding(str(encoding), arrow_type, path)
        arrow_metadata[BLOB_KEY.encode()] = b"true"
    if pt.is_binary(arrow_type) and _is_marked_as_blob(arrow_metadata):
        arrow_type = pa.large_binary()
    return pa.field(field.name, arrow_type, nullable=True, metadata=arrow_metadata or None)


def _check_encoding(encoding: str, arrow_type: pa.DataType, path: str) -> None:
    if encoding.lower() != _BLOB:
        raise InvalidInput(f"column {path!r}: {ENCODING_HINT} is {_BLOB!r}, not {encoding!r}")
    if not (pt.is_binary(arrow_type) or pt.is_large_binary(arrow_type)):
        raise InvalidInput(f"column {path!r}: {ENCODING_HINT} {_BLOB!r} is for bytes, not {arrow_type}")


def _table_type(arrow_type: pa.DataType, path: str, hints: dict[str, str]) -> pa.DataType:
    """Return the type with the child field names that other Lance writers use."""
    if pt.is_struct(arrow_type):
        return pa.struct([_field_from_spark(child, f"{path}.{child.name}", hints) for child in arrow_type])
    if pt.is_map(arrow_type):
        key = _table_type(arrow_type.key_type, f"{path}.key", hints)
        return pa.map_(key, _table_type(arrow_type.item_type, f"{path}.value", hints))
    if pt.is_list(arrow_type):
        return pa.list_(_table_type(arrow_type.value_type, f"{path}.item", hints))
    return arrow_type


def _with_float16(arrow_type: pa.DataType, path: str) -> pa.DataType:
    if pt.is_list(arrow_type):
        return pa.list_(_with_float16(arrow_type.value_type, path))
    if pt.is_floating(arrow_type):
        return pa.float16()
    raise InvalidInput(f"column {path!r}: {FLOAT16_HINT} is for floats and arrays of floats, not {arrow_type}")


def _with_bfloat16(field: pa.Field, path: str) -> pa.Field:
    if pt.is_list(field.type):
        return field.with_type(pa.list_(_with_bfloat16(field.type.value_field, path)))
    if pt.is_binary(field.type):
        marks = {EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
        return field.with_type(pa.binary(2)).with_metadata({**(field.metadata or {}), **marks})
    raise InvalidInput(f"column {path!r}: {BFLOAT16_HINT} is for bytes and arrays of bytes, not {field.type}")


def _with_size(arrow_type: pa.DataType, size: str, path: str) -> pa.DataType:
    if not pt.is_list(arrow_type):
        raise InvalidInput(f"column {path!r}: {FIXED_SIZE_HINT} is for arrays, not {arrow_type}")
    if not (size.isascii() and size.isdecimal() and int(size)):
        raise InvalidInput(f"column {path!r}: {FIXED_SIZE_HINT} must be a positive number, not {size!r}")
    return pa.list_(arrow_type.value_field, int(size))
