"""Change rows, columns and metadata of a table; each change is a plan, tasks and one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.changing.chosen_rows import ChosenRowsOutcome, ChosenRowsTask, RowChosenTwice, commit_chosen
    from lance_ops.changing.deletion import commit_deletion, delete, find_rows, plan_deletion, truncate
    from lance_ops.changing.duplicates import DuplicateKey, Duplicates, Keep, delete_duplicates, find_duplicates
    from lance_ops.changing.key_deletion import delete_by_keys
    from lance_ops.changing.restoration import restore
    from lance_ops.changing.row_buckets import RowBuckets
    from lance_ops.changing.row_lookup import key_and_values, locate_rows, named_rows, names_row_ids
    from lance_ops.changing.row_replacement import replace_matching, replace_rows
    from lance_ops.changing.row_updates import bind_updates, update
    from lance_ops.changing.row_values import ROW_KEY, RowValues, add_row_values, replace_row_values
    from lance_ops.changing.source_keys import SourceKeys, key_hashes
    from lance_ops.changing.table_metadata import MetadataValues, bind_field_metadata, bind_metadata, update_config

__all__ = [
    "ROW_KEY",
    "ChosenRowsOutcome",
    "ChosenRowsTask",
    "DuplicateKey",
    "Duplicates",
    "Keep",
    "MetadataValues",
    "RowBuckets",
    "RowChosenTwice",
    "RowValues",
    "SourceKeys",
    "add_row_values",
    "bind_field_metadata",
    "bind_metadata",
    "bind_updates",
    "commit_chosen",
    "commit_deletion",
    "delete",
    "delete_by_keys",
    "delete_duplicates",
    "find_duplicates",
    "find_rows",
    "key_and_values",
    "key_hashes",
    "locate_rows",
    "named_rows",
    "names_row_ids",
    "plan_deletion",
    "replace_matching",
    "replace_row_values",
    "replace_rows",
    "restore",
    "truncate",
    "update",
    "update_config",
]

_MODULES = {
    "ROW_KEY": "row_values",
    "ChosenRowsTask": "chosen_rows",
    "ChosenRowsOutcome": "chosen_rows",
    "DuplicateKey": "duplicates",
    "Duplicates": "duplicates",
    "Keep": "duplicates",
    "MetadataValues": "table_metadata",
    "RowBuckets": "row_buckets",
    "RowChosenTwice": "chosen_rows",
    "RowValues": "row_values",
    "SourceKeys": "source_keys",
    "add_row_values": "row_values",
    "bind_field_metadata": "table_metadata",
    "bind_metadata": "table_metadata",
    "bind_updates": "row_updates",
    "commit_chosen": "chosen_rows",
    "commit_deletion": "deletion",
    "delete": "deletion",
    "delete_by_keys": "key_deletion",
    "delete_duplicates": "duplicates",
    "find_duplicates": "duplicates",
    "find_rows": "deletion",
    "key_and_values": "row_lookup",
    "key_hashes": "source_keys",
    "locate_rows": "row_lookup",
    "named_rows": "row_lookup",
    "names_row_ids": "row_lookup",
    "plan_deletion": "deletion",
    "replace_matching": "row_replacement",
    "replace_row_values": "row_values",
    "replace_rows": "row_replacement",
    "restore": "restoration",
    "truncate": "deletion",
    "update": "row_updates",
    "update_config": "table_metadata",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
