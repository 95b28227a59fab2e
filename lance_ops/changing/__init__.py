"""Change rows, columns and metadata of a table; each change is a plan, tasks and one commit."""

from lance_ops.changing.deletion import commit_deletion, delete, find_rows, plan_deletion, truncate
from lance_ops.changing.restoration import restore
from lance_ops.changing.row_replacement import replace_matching, replace_rows
from lance_ops.changing.row_updates import bind_updates, update
from lance_ops.changing.table_metadata import MetadataValues, bind_field_metadata, bind_metadata, update_config

__all__ = [
    "MetadataValues",
    "bind_field_metadata",
    "bind_metadata",
    "bind_updates",
    "commit_deletion",
    "delete",
    "find_rows",
    "plan_deletion",
    "replace_matching",
    "replace_rows",
    "restore",
    "truncate",
    "update",
    "update_config",
]
