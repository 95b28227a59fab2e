"""What a table says and what Spark says: column names, types, values, and filters."""

from lance_ops.core.schema import CaseRule
from lance_ops.spark.translation.column_names import (
    FRAGMENT_ID,
    ROW_COLUMN_TYPES,
    stored_path,
    stored_paths,
)
from lance_ops.spark.translation.pushdown import pushed_predicate
from lance_ops.spark.translation.type_casts import fit
from lance_ops.spark.translation.types import (
    FIXED_SIZE_HINT,
    FLOAT16_HINT,
    is_hint,
    keep_types,
    schema_for_spark,
    schema_from_spark,
)

__all__ = [
    "FIXED_SIZE_HINT",
    "FLOAT16_HINT",
    "FRAGMENT_ID",
    "ROW_COLUMN_TYPES",
    "CaseRule",
    "fit",
    "is_hint",
    "keep_types",
    "pushed_predicate",
    "schema_for_spark",
    "schema_from_spark",
    "stored_path",
    "stored_paths",
]
