"""Convert Arrow schemas to the reference's JSON form and back.

    {fields: [{name, type: {type, fields?, length?}, nullable, metadata?}], metadata?}

A type has the name of its logical type in a manifest. A nested type lists its child fields instead. Maps have no name
in this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.schema import arrow_type_of, logical_type_of

__all__ = ["json_to_schema", "schema_to_json"]


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as JSON values; raise `UnsupportedFeature` for a type without a name in this form."""
    return {"fields": [_field_to_json(field) for field in schema], **_metadata_to_json(schema.metadata)}


def json_to_schema(schema_json: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema for JSON values; raise `InvalidInput` if they do not have this form."""
    try:
        return pa.schema([_field(field) for field in schema_json["fields"]], schema_json.get("metadata"))
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"no schema in JSON: {error!r}") from error


def _field_to_json(field: pa.Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": _type_to_json(field.type, field.name),
        "nullable": field.nullable,
        **_metadata_to_json(field.metadata),
    }


def _type_to_json(arrow_type: pa.DataType, name: str) -> dict[str, Any]:
    types = pa.types
    if types.is_struct(arrow_type):
        return {"type": "struct", "fields": [_field_to_json(field) for field in arrow_type]}
    for kind, is_kind in (
        ("list", types.is_list),
        ("large_list", types.is_large_list),
        ("fixed_size_list", types.is_fixed_size_list),
    ):
        if is_kind(arrow_type):
            length = {"length": arrow_type.list_size} if kind == "fixed_size_list" else {}
            return {"type": kind, "fields": [_field_to_json(arrow_type.value_field)], **length}
    if types.is_fixed_size_binary(arrow_type):
        return {"type": "fixed_size_binary", "length": arrow_type.byte_width}
    if types.is_map(arrow_type):
        raise UnsupportedFeature("a map in a schema as JSON", f"column {name!r}")
    return {"type": logical_type_of(arrow_type, name)}


def _field(said: Mapping[str, Any]) -> pa.Field:
    return pa.field(said["name"], _type(said["type"]), said["nullable"], said.get("metadata"))


def _type(said: Mapping[str, Any]) -> pa.DataType:
    fields = [_field(field) for field in said.get("fields") or ()]
    match said["type"], fields:
        case "struct", _:
            return pa.struct(fields)
        case "list", [item]:
            return pa.list_(item)
        case "large_list", [item]:
            return pa.large_list(item)
        case "fixed_size_list", [item]:
            return pa.list_(item, said["length"])
        case "fixed_size_binary", []:
            return pa.binary(said["length"])
        case str(name), []:
            return arrow_type_of(name, (), "in JSON")
    raise InvalidInput(f"no type in JSON: {dict(said)}")


def _metadata_to_json(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata:
        return {}
    return {"metadata": {key.decode(): value.decode() for key, value in metadata.items()}}
