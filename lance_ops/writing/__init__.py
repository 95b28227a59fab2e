"""Write rows as new fragments, and commit them as a version: create, append and overwrite."""

from lance_ops.writing.commit import commit_operation, commit_transaction, create_dataset
from lance_ops.writing.deletion_files import hide_rows
from lance_ops.writing.described_file import describe_data_file, describe_fragment
from lance_ops.writing.fragment_writer import (
    MAX_BYTES_PER_FILE,
    MAX_ROWS_PER_FILE,
    FragmentLimits,
    FragmentWriter,
    write_fragments,
    write_new_table,
)
from lance_ops.writing.new_table_schema import table_schema
from lance_ops.writing.retry import retry_conflicts
from lance_ops.writing.row_writer import RowWriter, output_version
from lance_ops.writing.runners import InThreads, Runner, run_all
from lance_ops.writing.schema_conformance import conform, conform_columns
from lance_ops.writing.task_shares import fragment_shares
from lance_ops.writing.write import NewTable, append, check_stable_row_ids, create, overwrite
from lance_ops.writing.write_progress import FragmentWriteProgress, NoopFragmentWriteProgress
from lance_ops.writing.write_targets import WriteTargets, choose_bases, number_bases

__all__ = [
    "MAX_BYTES_PER_FILE",
    "MAX_ROWS_PER_FILE",
    "FragmentLimits",
    "FragmentWriteProgress",
    "FragmentWriter",
    "InThreads",
    "NewTable",
    "NoopFragmentWriteProgress",
    "RowWriter",
    "Runner",
    "WriteTargets",
    "append",
    "check_stable_row_ids",
    "choose_bases",
    "commit_operation",
    "commit_transaction",
    "conform",
    "conform_columns",
    "create",
    "create_dataset",
    "describe_data_file",
    "describe_fragment",
    "fragment_shares",
    "hide_rows",
    "number_bases",
    "output_version",
    "overwrite",
    "retry_conflicts",
    "run_all",
    "table_schema",
    "write_fragments",
    "write_new_table",
]
