"""The columns of a table, changed: added, dropped, renamed, cast, without writing any other column anew."""

from lance_ops.changing.columns.add import (
    add_columns,
    add_null_columns,
    add_streamed_columns,
    bind_computed,
    bind_joined,
)
from lance_ops.changing.columns.alter import Alteration, alter_columns, drop_columns
from lance_ops.changing.columns.backfill import (
    ColumnFile,
    pending_columns,
    plan_backfill,
    with_column_files,
    write_columns,
    write_streamed_columns,
)
from lance_ops.changing.columns.checkpoint import Checkpoint
from lance_ops.changing.columns.patch import PatchedColumns, bind_patch, matched_offsets, patched_fragments, plan_patch
from lance_ops.changing.columns.sources import ColumnSource, FunctionColumns, as_table

__all__ = [
    "Alteration",
    "Checkpoint",
    "ColumnFile",
    "ColumnSource",
    "FunctionColumns",
    "PatchedColumns",
    "add_columns",
    "add_null_columns",
    "add_streamed_columns",
    "alter_columns",
    "as_table",
    "bind_computed",
    "bind_joined",
    "bind_patch",
    "drop_columns",
    "matched_offsets",
    "patched_fragments",
    "pending_columns",
    "plan_backfill",
    "plan_patch",
    "with_column_files",
    "write_columns",
    "write_streamed_columns",
]
