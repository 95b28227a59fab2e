"""The checks of a verification, one module for each part of a version. A check records findings and does not raise."""

from lance_ops.maintenance.verification.checks.fragment_checks import check_fragment, check_rows
from lance_ops.maintenance.verification.checks.index_checks import check_index, has_comparable_entries
from lance_ops.maintenance.verification.checks.index_entry_checks import RowSpan, check_index_entries
from lance_ops.maintenance.verification.checks.reference_checks import check_references
from lance_ops.maintenance.verification.checks.row_id_checks import (
    SharedRowId,
    find_shared_row_ids,
    record_shared_row_ids,
)
from lance_ops.maintenance.verification.checks.table_checks import check_table

__all__ = [
    "RowSpan",
    "SharedRowId",
    "check_fragment",
    "check_index",
    "check_index_entries",
    "check_references",
    "check_rows",
    "check_table",
    "find_shared_row_ids",
    "has_comparable_entries",
    "record_shared_row_ids",
]
