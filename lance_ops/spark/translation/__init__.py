"""What a table says and what Spark says: column names, types, values, and filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.schema import CaseRule
    from lance_ops.spark.translation.arrow_schemas import arrow_schema_of
    from lance_ops.spark.translation.assigned_values import assigned_columns, assigned_value, is_nested
    from lance_ops.spark.translation.column_names import (
        FRAGMENT_ID,
        ROW_COLUMN_TYPES,
        quoted_path,
        row_column,
        session_case_rule,
        stored_path,
        stored_paths,
    )
    from lance_ops.spark.translation.equal_values import (
        check_half_floats,
        check_key_types,
        check_whole_microseconds,
        compares_keys_alike,
        has_nanoseconds,
        rows_with_possible_keys,
    )
    from lance_ops.spark.translation.pushdown import pushed_predicate
    from lance_ops.spark.translation.session_casts import cast_to, session_types, with_moments_of
    from lance_ops.spark.translation.store_assignment import check_assignable
    from lance_ops.spark.translation.task_clock import session_time_zone
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
    "arrow_schema_of",
    "assigned_columns",
    "assigned_value",
    "cast_to",
    "check_assignable",
    "check_half_floats",
    "check_key_types",
    "check_whole_microseconds",
    "compares_keys_alike",
    "fit",
    "has_nanoseconds",
    "is_hint",
    "is_nested",
    "keep_types",
    "pushed_predicate",
    "quoted_path",
    "row_column",
    "rows_with_possible_keys",
    "schema_for_spark",
    "schema_from_spark",
    "session_case_rule",
    "session_time_zone",
    "session_types",
    "stored_path",
    "stored_paths",
    "with_moments_of",
]

_MODULES = {
    "FIXED_SIZE_HINT": "types",
    "FLOAT16_HINT": "types",
    "FRAGMENT_ID": "column_names",
    "ROW_COLUMN_TYPES": "column_names",
    "CaseRule": "lance_ops.core.schema",
    "arrow_schema_of": "arrow_schemas",
    "assigned_columns": "assigned_values",
    "assigned_value": "assigned_values",
    "cast_to": "session_casts",
    "check_assignable": "store_assignment",
    "check_half_floats": "equal_values",
    "check_key_types": "equal_values",
    "check_whole_microseconds": "equal_values",
    "compares_keys_alike": "equal_values",
    "fit": "type_casts",
    "has_nanoseconds": "equal_values",
    "is_hint": "types",
    "is_nested": "assigned_values",
    "keep_types": "types",
    "pushed_predicate": "pushdown",
    "quoted_path": "column_names",
    "row_column": "column_names",
    "rows_with_possible_keys": "equal_values",
    "schema_for_spark": "types",
    "schema_from_spark": "types",
    "session_case_rule": "column_names",
    "session_time_zone": "task_clock",
    "session_types": "session_casts",
    "stored_path": "column_names",
    "stored_paths": "column_names",
    "with_moments_of": "session_casts",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
