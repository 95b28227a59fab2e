"""Read rows of a version by scan, take or index look-up, and compare the rows of two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.reading.change_feed import Changes, changes_between
    from lance_ops.reading.deferred_remaps import remap_addresses
    from lance_ops.reading.filters import UserFilter, bind_filter, schema_with_row_columns
    from lance_ops.reading.index_lookup import (
        IndexLookup,
        awaits_remap,
        has_index_files,
        is_searchable,
        look_up,
        open_index,
        row_key_of,
        serving_index,
    )
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
        empty_answer,
        in_task,
        scan,
        scan_fragments,
        scan_rows,
        scan_whole,
    )
    from lance_ops.reading.scan_plan import Block, ScanRequest, check_is_stored, plan_scan
    from lance_ops.reading.scan_trace import ScanTrace, Step, traced
    from lance_ops.reading.scanned_rows import RowOffsets, ScannedRows, offset_array
    from lance_ops.reading.sorted_scan import (
        check_orderings,
        describe_order,
        scan_sorted,
        without_limit,
    )
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
    "IndexLookup",
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
    "has_index_files",
    "in_task",
    "is_searchable",
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

_MODULES = {
    "ROW_ADDRESS": "row_columns",
    "ROW_COLUMNS": "row_columns",
    "ROW_ID": "row_columns",
    "ROW_OFFSET": "row_columns",
    "SELECTABLE_ROW_COLUMNS": "row_columns",
    "TASK_READAHEAD": "scan_execution",
    "VERSION_COLUMNS": "row_columns",
    "Block": "scan_plan",
    "Changes": "change_feed",
    "IndexLookup": "index_lookup",
    "RowOffsets": "scanned_rows",
    "ScanRequest": "scan_plan",
    "ScanTrace": "scan_trace",
    "ScannedRows": "scanned_rows",
    "Step": "scan_trace",
    "UserFilter": "filters",
    "allowed_rows": "row_id_masks",
    "awaits_remap": "index_lookup",
    "bind_filter": "filters",
    "changes_between": "change_feed",
    "check_is_stored": "scan_plan",
    "check_orderings": "sorted_scan",
    "describe_order": "sorted_scan",
    "empty_answer": "scan_execution",
    "has_index_files": "index_lookup",
    "in_task": "scan_execution",
    "is_searchable": "index_lookup",
    "look_up": "index_lookup",
    "offset_array": "scanned_rows",
    "open_index": "index_lookup",
    "plan_scan": "scan_plan",
    "read_fragments_together": "joined_fragments",
    "remap_addresses": "deferred_remaps",
    "row_field": "row_columns",
    "row_key_of": "index_lookup",
    "scan": "scan_execution",
    "scan_fragments": "scan_execution",
    "scan_rows": "scan_execution",
    "scan_sorted": "sorted_scan",
    "scan_whole": "scan_execution",
    "schema_with_row_columns": "filters",
    "serving_index": "index_lookup",
    "take_addresses": "take",
    "take_positions": "take",
    "take_row_ids": "take",
    "traced": "scan_trace",
    "without_limit": "sorted_scan",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
