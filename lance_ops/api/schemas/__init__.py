"""`LanceSchema`, and Arrow schemas as JSON, under the reference's names."""

from lance_ops.api.schemas.lance_schema import AnySchema, LanceField, LanceSchema, schema_of
from lance_ops.api.schemas.schema_json import json_to_schema, schema_to_json

__all__ = [
    "AnySchema",
    "LanceField",
    "LanceSchema",
    "json_to_schema",
    "schema_of",
    "schema_to_json",
]
