"""Write rows as new fragments, and commit them as a version: create, append and overwrite."""

from lance_ops.writing.commit import (
    commit_detached_transaction,
    commit_operation,
    commit_transaction,
    create_dataset,
)
from lance_ops.writing.conflict_retries import retry_conflicts
from lance_ops.writing.create_append_overwrite import NewTable, append, check_stable_row_ids, create, overwrite
from lance_ops.writing.data_file_description import describe_data_file, describe_fragment
from lance_ops.writing.deletion_files import WrittenDeletions, write_deletion_files
from lance_ops.writing.file_version_choice import choose_file_version
from lance_ops.writing.fragment_writer import (
    MAX_BYTES_PER_FILE,
    MAX_ROWS_PER_FILE,
    FragmentLimits,
    FragmentWriter,
    write_fragments,
    write_new_table,
)
from lance_ops.writing.new_table_schema import table_schema
from lance_ops.writing.schema_conformance import conform_present_columns, conform_to_schema
from lance_ops.writing.task_shares import TaskShare, share_rows
from lance_ops.writing.updated_row_writer import UpdatedRowWriter
from lance_ops.writing.write_progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    NoopFragmentWriteProgress,
    NumberedProgress,
)
from lance_ops.writing.write_targets import WriteTargets, choose_bases, number_bases

__all__ = [
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
    "share_rows",
    "table_schema",
    "write_deletion_files",
    "write_fragments",
    "write_new_table",
]
