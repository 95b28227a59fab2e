"""Write rows as new fragments, and commit them as a version: create, append and overwrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.writing.commit import (
        commit_detached_transaction,
        commit_operation,
        commit_transaction,
        create_dataset,
    )
    from lance_ops.writing.conflict_retries import CONFLICT_RETRIES, retry_conflicts
    from lance_ops.writing.create_append_overwrite import NewTable, append, check_stable_row_ids, create, overwrite
    from lance_ops.writing.data_file_description import describe_data_file, describe_fragment
    from lance_ops.writing.deletion_files import WrittenDeletions, write_deletion_files
    from lance_ops.writing.file_version_choice import choose_file_version
    from lance_ops.writing.fragment_limits import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, FragmentLimits
    from lance_ops.writing.fragment_writer import (
        FragmentWriter,
        write_fragments,
        write_new_table,
    )
    from lance_ops.writing.new_table_schema import table_schema
    from lance_ops.writing.schema_conformance import conform_present_columns, conform_to_schema
    from lance_ops.writing.task_shares import TaskShare, share_fragments, share_rows
    from lance_ops.writing.updated_row_writer import UpdatedRowWriter
    from lance_ops.writing.write_progress import (
        FileSystemFragmentWriteProgress,
        FragmentWriteProgress,
        NoopFragmentWriteProgress,
        NumberedProgress,
    )
    from lance_ops.writing.write_targets import WriteTargets, choose_bases, number_bases

__all__ = [
    "CONFLICT_RETRIES",
    "MAX_BYTES_PER_FILE",
    "MAX_ROWS_PER_FILE",
    "FileSystemFragmentWriteProgress",
    "FragmentLimits",
    "FragmentWriteProgress",
    "FragmentWriter",
    "NewTable",
    "NoopFragmentWriteProgress",
    "NumberedProgress",
    "TaskShare",
    "UpdatedRowWriter",
    "WriteTargets",
    "WrittenDeletions",
    "append",
    "check_stable_row_ids",
    "choose_bases",
    "choose_file_version",
    "commit_detached_transaction",
    "commit_operation",
    "commit_transaction",
    "conform_present_columns",
    "conform_to_schema",
    "create",
    "create_dataset",
    "describe_data_file",
    "describe_fragment",
    "number_bases",
    "overwrite",
    "retry_conflicts",
    "share_fragments",
    "share_rows",
    "table_schema",
    "write_deletion_files",
    "write_fragments",
    "write_new_table",
]

_MODULES = {
    "MAX_BYTES_PER_FILE": "fragment_limits",
    "MAX_ROWS_PER_FILE": "fragment_limits",
    "FileSystemFragmentWriteProgress": "write_progress",
    "FragmentLimits": "fragment_limits",
    "FragmentWriteProgress": "write_progress",
    "FragmentWriter": "fragment_writer",
    "NewTable": "create_append_overwrite",
    "NoopFragmentWriteProgress": "write_progress",
    "NumberedProgress": "write_progress",
    "TaskShare": "task_shares",
    "share_fragments": "task_shares",
    "UpdatedRowWriter": "updated_row_writer",
    "WriteTargets": "write_targets",
    "WrittenDeletions": "deletion_files",
    "append": "create_append_overwrite",
    "check_stable_row_ids": "create_append_overwrite",
    "choose_bases": "write_targets",
    "choose_file_version": "file_version_choice",
    "commit_detached_transaction": "commit",
    "commit_operation": "commit",
    "commit_transaction": "commit",
    "conform_present_columns": "schema_conformance",
    "conform_to_schema": "schema_conformance",
    "create": "create_append_overwrite",
    "create_dataset": "commit",
    "describe_data_file": "data_file_description",
    "describe_fragment": "data_file_description",
    "number_bases": "write_targets",
    "overwrite": "create_append_overwrite",
    "CONFLICT_RETRIES": "conflict_retries",
    "retry_conflicts": "conflict_retries",
    "share_rows": "task_shares",
    "table_schema": "new_table_schema",
    "write_deletion_files": "deletion_files",
    "write_fragments": "fragment_writer",
    "write_new_table": "fragment_writer",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
