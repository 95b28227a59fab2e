"""`LanceSchema`, Arrow schemas as JSON, and Arrow schemas with the types of bfloat16 and images."""

from lance_ops.api.schemas.extension_types import shown_array, shown_field, shown_schema
from lance_ops.api.schemas.lance_schema import AnySchema, LanceField, LanceSchema, schema_of
from lance_ops.api.schemas.schema_json import json_to_schema, schema_to_json

__all__ = [
    "AnySchema",
    "LanceField",
    "LanceSchema",
    "json_to_schema",
    "schema_of",
    "schema_to_json",
    "shown_array",
    "shown_field",
    "shown_schema",
]
