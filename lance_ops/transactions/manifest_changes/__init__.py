"""Changes of a manifest's parts that several operations share."""

from lance_ops.transactions.manifest_changes.assigned_ids import assign_fragment_ids, assign_ids, assign_row_ids
from lance_ops.transactions.manifest_changes.changed_values import files_by_field, fragments_with_changed_values
from lance_ops.transactions.manifest_changes.fragment_lookup import check_fragments_exist, fragments_by_id
from lance_ops.transactions.manifest_changes.index_coverage import (
    drop_orphaned_indices,
    holds_row_addresses,
    remove_coverage,
)
from lance_ops.transactions.manifest_changes.update_map import UpdateMap, with_field_metadata
from lance_ops.transactions.manifest_changes.version_stamps import (
    stamp_all_rows,
    stamp_moved_rows,
    stamp_rewritten_offsets,
)

__all__ = [
    "UpdateMap",
    "assign_fragment_ids",
    "assign_ids",
    "assign_row_ids",
    "check_fragments_exist",
    "drop_orphaned_indices",
    "files_by_field",
    "fragments_by_id",
    "fragments_with_changed_values",
    "holds_row_addresses",
    "remove_coverage",
    "stamp_all_rows",
    "stamp_moved_rows",
    "stamp_rewritten_offsets",
    "with_field_metadata",
]
