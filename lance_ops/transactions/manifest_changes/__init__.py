"""Steps from one manifest to the next that several operations share."""

from lance_ops.transactions.manifest_changes.index_upkeep import drop_orphans, holds_row_addresses, uncover
from lance_ops.transactions.manifest_changes.indexed_values import homes, with_other_values
from lance_ops.transactions.manifest_changes.lookup import by_id, check_present
from lance_ops.transactions.manifest_changes.numbering import number_fragments, number_new_rows, with_row_ids
from lance_ops.transactions.manifest_changes.update_map import UpdateMap, with_field_metadata
from lance_ops.transactions.manifest_changes.version_stamps import (
    stamp_all_rows,
    stamp_moved_rows,
    stamp_rewritten_offsets,
)

__all__ = [
    "UpdateMap",
    "by_id",
    "check_present",
    "drop_orphans",
    "holds_row_addresses",
    "homes",
    "number_fragments",
    "number_new_rows",
    "stamp_all_rows",
    "stamp_moved_rows",
    "stamp_rewritten_offsets",
    "uncover",
    "with_field_metadata",
    "with_other_values",
    "with_row_ids",
]
