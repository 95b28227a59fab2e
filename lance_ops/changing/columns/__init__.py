"""Add, drop, rename and cast columns, and replace values in them, without rewriting the other columns."""

from lance_ops.changing.columns.add import (
    add_columns,
    add_null_columns,
    add_streamed_columns,
    bind_computed,
    bind_joined,
)
from lance_ops.changing.columns.alter import Alteration, alter_columns, drop_columns
from lance_ops.changing.columns.backfill import backfill_request, plan_backfill, write_columns, write_streamed_columns
from lance_ops.changing.columns.checkpoint import Checkpoint
from lance_ops.changing.columns.column_file import ColumnFile, fragments_with_column_files, pending_columns
from lance_ops.changing.columns.column_sources import ColumnSource, FunctionColumns, as_table
from lance_ops.changing.columns.value_replacement import (
    ReplacedValues,
    bind_replaced_values,
    fragments_with_replaced_values,
    offsets_of_replaced_values,
    plan_value_replacement,
)

__all__ = [
    "Alteration",
    "Checkpoint",
    "ColumnFile",
    "ColumnSource",
    "FunctionColumns",
    "ReplacedValues",
    "add_columns",
    "add_null_columns",
    "add_streamed_columns",
    "alter_columns",
    "as_table",
    "backfill_request",
    "bind_computed",
    "bind_joined",
    "bind_replaced_values",
    "drop_columns",
    "fragments_with_column_files",
    "fragments_with_replaced_values",
    "offsets_of_replaced_values",
    "pending_columns",
    "plan_backfill",
    "plan_value_replacement",
    "write_columns",
    "write_streamed_columns",
]
