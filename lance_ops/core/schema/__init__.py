"""Lance schemas: fields with ids, their edits, and the logical types of the format."""

from lance_ops.core.schema.field import NO_PARENT, Dictionary, Field
from lance_ops.core.schema.logical_types import arrow_type_of, logical_type_of
from lance_ops.core.schema.schema import Schema, split_path
from lance_ops.core.schema.schema_edit import renumbered, with_dictionaries, with_field, with_new_fields, without_fields

__all__ = [
    "NO_PARENT",
    "Dictionary",
    "Field",
    "Schema",
    "arrow_type_of",
    "logical_type_of",
    "renumbered",
    "split_path",
    "with_dictionaries",
    "with_field",
    "with_new_fields",
    "without_fields",
]
