"""The reference's `lance.schema`: schemas with the ids of their fields."""

from lance_ops.api import LanceField, LanceSchema, json_to_schema, schema_to_json

__all__ = ["LanceField", "LanceSchema", "json_to_schema", "schema_to_json"]
