"""Add, drop, rename and cast columns, and replace values in them, without rewriting the other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.changing.columns.add import (
        add_columns,
        add_null_columns,
        add_streamed_columns,
        bind_computed,
        bind_joined,
        files_to_keep,
    )
    from lance_ops.changing.columns.alter import Alteration, alter_columns, drop_columns
    from lance_ops.changing.columns.backfill import (
        backfill_request,
        check_no_blobs,
        plan_backfill,
        run_backfill,
        write_columns,
        write_streamed_columns,
    )
    from lance_ops.changing.columns.checkpoint import Checkpoint
    from lance_ops.changing.columns.column_file import ColumnFile, fragments_with_column_files, pending_columns
    from lance_ops.changing.columns.column_sources import ColumnSource, FunctionColumns, as_table
    from lance_ops.changing.columns.evolution import (
        SchemaChange,
        change_schema,
        changed_schema,
        plan_schema_change,
    )
    from lance_ops.changing.columns.made_functions import MadeFunction
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
    "MadeFunction",
    "ReplacedValues",
    "SchemaChange",
    "add_columns",
    "add_null_columns",
    "add_streamed_columns",
    "alter_columns",
    "as_table",
    "backfill_request",
    "bind_computed",
    "bind_joined",
    "bind_replaced_values",
    "change_schema",
    "changed_schema",
    "check_no_blobs",
    "drop_columns",
    "files_to_keep",
    "fragments_with_column_files",
    "fragments_with_replaced_values",
    "offsets_of_replaced_values",
    "pending_columns",
    "plan_backfill",
    "plan_schema_change",
    "plan_value_replacement",
    "run_backfill",
    "write_columns",
    "write_streamed_columns",
]

_MODULES = {
    "Alteration": "alter",
    "Checkpoint": "checkpoint",
    "ColumnFile": "column_file",
    "ColumnSource": "column_sources",
    "FunctionColumns": "column_sources",
    "MadeFunction": "made_functions",
    "ReplacedValues": "value_replacement",
    "SchemaChange": "evolution",
    "add_columns": "add",
    "add_null_columns": "add",
    "add_streamed_columns": "add",
    "alter_columns": "alter",
    "as_table": "column_sources",
    "backfill_request": "backfill",
    "bind_computed": "add",
    "bind_joined": "add",
    "bind_replaced_values": "value_replacement",
    "change_schema": "evolution",
    "changed_schema": "evolution",
    "check_no_blobs": "backfill",
    "drop_columns": "alter",
    "files_to_keep": "add",
    "fragments_with_column_files": "column_file",
    "fragments_with_replaced_values": "value_replacement",
    "offsets_of_replaced_values": "value_replacement",
    "pending_columns": "column_file",
    "plan_backfill": "backfill",
    "plan_schema_change": "evolution",
    "plan_value_replacement": "value_replacement",
    "run_backfill": "backfill",
    "write_columns": "backfill",
    "write_streamed_columns": "backfill",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
