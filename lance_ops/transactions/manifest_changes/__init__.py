"""Changes of a manifest's parts that several operations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.transactions.manifest_changes.assigned_ids import assign_fragment_ids, assign_ids, assign_row_ids
    from lance_ops.transactions.manifest_changes.changed_values import fragments_with_changed_values
    from lance_ops.transactions.manifest_changes.fragment_lookup import (
        check_fragments_exist,
        fragments_by_id,
        live_fields,
    )
    from lance_ops.transactions.manifest_changes.index_coverage import (
        drop_orphaned_indices,
        holds_row_addresses,
        keeps_entries_of_deleted_rows,
        remove_changed_coverage,
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
    "fragments_by_id",
    "fragments_with_changed_values",
    "holds_row_addresses",
    "keeps_entries_of_deleted_rows",
    "live_fields",
    "remove_changed_coverage",
    "stamp_all_rows",
    "stamp_moved_rows",
    "stamp_rewritten_offsets",
    "with_field_metadata",
]

_MODULES = {
    "UpdateMap": "update_map",
    "assign_fragment_ids": "assigned_ids",
    "assign_ids": "assigned_ids",
    "assign_row_ids": "assigned_ids",
    "check_fragments_exist": "fragment_lookup",
    "drop_orphaned_indices": "index_coverage",
    "fragments_by_id": "fragment_lookup",
    "fragments_with_changed_values": "changed_values",
    "holds_row_addresses": "index_coverage",
    "keeps_entries_of_deleted_rows": "index_coverage",
    "live_fields": "fragment_lookup",
    "remove_changed_coverage": "index_coverage",
    "stamp_all_rows": "version_stamps",
    "stamp_moved_rows": "version_stamps",
    "stamp_rewritten_offsets": "version_stamps",
    "with_field_metadata": "update_map",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
