"""Lance schemas: fields with ids, their edits, and the logical types of the format."""

from lance_ops.core.schema.column_ordering import ColumnOrdering
from lance_ops.core.schema.field import NO_PARENT, Dictionary, Field
from lance_ops.core.schema.limits import ROW_COLUMN_NAMES, check_column_name, check_table_schema, schema_flaws
from lance_ops.core.schema.logical_types import BFLOAT16, arrow_type_of, logical_type_of
from lance_ops.core.schema.name_matching import CaseRule, spelled_as
from lance_ops.core.schema.nesting import MAX_DEPTH, check_depth, depth_of
from lance_ops.core.schema.plain_columns import PlainColumns
from lance_ops.core.schema.primary_key import PRIMARY_KEY, declares_primary_key, primary_key_flaws
from lance_ops.core.schema.schema import Schema, split_path
from lance_ops.core.schema.schema_edit import (
    check_sibling_names,
    renumbered,
    with_dictionaries,
    with_field,
    with_new_fields,
    without_fields,
)
from lance_ops.core.schema.schema_mode import SchemaMode

__all__ = [
    "BFLOAT16",
    "MAX_DEPTH",
    "NO_PARENT",
    "PRIMARY_KEY",
    "ROW_COLUMN_NAMES",
    "CaseRule",
    "ColumnOrdering",
    "Dictionary",
    "Field",
    "PlainColumns",
    "Schema",
    "SchemaMode",
    "arrow_type_of",
    "check_column_name",
    "check_depth",
    "check_sibling_names",
    "check_table_schema",
    "declares_primary_key",
    "depth_of",
    "logical_type_of",
    "primary_key_flaws",
    "renumbered",
    "schema_flaws",
    "spelled_as",
    "split_path",
    "with_dictionaries",
    "with_field",
    "with_new_fields",
    "without_fields",
]
