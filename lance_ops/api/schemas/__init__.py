"""`LanceSchema`, Arrow schemas as JSON, and Arrow schemas with the types of bfloat16 and images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "AnySchema": "lance_schema",
    "LanceField": "lance_schema",
    "LanceSchema": "lance_schema",
    "json_to_schema": "schema_json",
    "schema_of": "lance_schema",
    "schema_to_json": "schema_json",
    "shown_array": "extension_types",
    "shown_field": "extension_types",
    "shown_schema": "extension_types",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
