"""Read rows of a version by scan, take or index look-up, and compare the rows of two versions."""

from lance_ops.reading.change_feed import Changes, changes_between
from lance_ops.reading.deferred_remaps import remap_addresses
from lance_ops.reading.filters import UserFilter, bind_filter, schema_with_row_columns
from lance_ops.reading.index_lookup import awaits_remap, look_up, open_index, row_key_of, serving_index
from lance_ops.reading.joined_fragments import read_fragments_together
from lance_ops.reading.row_columns import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    ROW_OFFSET,
    SELECTABLE_ROW_COLUMNS,
    VERSION_COLUMNS,
    row_field,
)
from lance_ops.reading.row_id_masks import allowed_rows
from lance_ops.reading.scan_execution import (
    TASK_READAHEAD,
    ScanRequest,
    empty_answer,
    in_task,
    plan_scan,
    scan,
    scan_fragments,
    scan_rows,
    scan_whole,
)
from lance_ops.reading.scan_plan import Block, check_is_stored
from lance_ops.reading.scan_trace import ScanTrace, Step, traced
from lance_ops.reading.scanned_rows import RowOffsets, ScannedRows, offset_array
from lance_ops.reading.sorted_scan import ColumnOrdering, check_orderings, describe_order, scan_sorted, without_limit
from lance_ops.reading.take import take_addresses, take_positions, take_row_ids

__all__ = [
    "ROW_ADDRESS",
    "ROW_COLUMNS",
    "ROW_ID",
    "ROW_OFFSET",
    "SELECTABLE_ROW_COLUMNS",
    "TASK_READAHEAD",
    "VERSION_COLUMNS",
    "Block",
    "Changes",
    "ColumnOrdering",
    "RowOffsets",
    "ScanRequest",
    "ScanTrace",
    "ScannedRows",
    "Step",
    "UserFilter",
    "allowed_rows",
    "awaits_remap",
    "bind_filter",
    "changes_between",
    "check_is_stored",
    "check_orderings",
    "describe_order",
    "empty_answer",
    "in_task",
    "look_up",
    "offset_array",
    "open_index",
    "plan_scan",
    "read_fragments_together",
    "remap_addresses",
    "row_field",
    "row_key_of",
    "scan",
    "scan_fragments",
    "scan_rows",
    "scan_sorted",
    "scan_whole",
    "schema_with_row_columns",
    "serving_index",
    "take_addresses",
    "take_positions",
    "take_row_ids",
    "traced",
    "without_limit",
]
