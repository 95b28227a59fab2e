"""Convert transactions to comparable values without file names, so that equal work of both libraries is equal."""

from __future__ import annotations

from typing import Any

from lance_ops.api.transactions import AnyOperation, to_internal
from lance_ops.core.schema import Schema
from lance_ops.table import Fragment
from lance_ops.table.rows.row_sequences import count_row_ids, decode_row_ids
from lance_ops.transactions import Append, Merge, Overwrite, Update

__all__ = ["shape_of"]


def shape_of(operation: AnyOperation) -> dict[str, Any]:
    """Return an operation's content as comparable values."""
    match to_internal(operation):
        case Update() as update:
            return _shape_of_update(update)
        case Merge(fragments, schema, preserves_nullability):
            return {
                "fragments": [shape_of_fragment(fragment) for fragment in fragments],
                "schema": Schema(schema.fields),  # the reference's transaction lacks new metadata of the schema
                "preserves_nullability": preserves_nullability,
            }
        case Append(fragments):
            return {"fragments": [shape_of_fragment(fragment) for fragment in fragments]}
        case Overwrite(fragments, schema):
            return {"fragments": [shape_of_fragment(fragment) for fragment in fragments], "schema": schema}
        case other:
            return {"operation": other}


def _shape_of_update(operation: Update) -> dict[str, Any]:
    return {
        "removed": sorted(operation.removed_fragment_ids),
        "updated": sorted((shape_of_fragment(f) for f in operation.updated_fragments), key=lambda shape: shape["id"]),
        "new": [shape_of_fragment(fragment) for fragment in operation.new_fragments],
        "fields_modified": operation.fields_modified,
        "fields_for_preserving_frag_bitmap": set(operation.fields_for_preserving_frag_bitmap),
        "update_mode": operation.update_mode,
        "updated_offsets": operation.updated_offsets,
        "has_inserted_rows": operation.inserted_rows is not None,
    }


def shape_of_fragment(fragment: Fragment) -> dict[str, Any]:
    """Return a fragment's content without the names and sizes of its files."""
    known = fragment.row_ids
    return {
        "id": fragment.id,
        "files": [(file.fields, file.column_indices, file.numbers) for file in fragment.files],
        "physical_rows": fragment.physical_rows,
        "deleted": fragment.deletion_file.num_deleted_rows if fragment.deletion_file else 0,
        "row_ids": decode_row_ids(known, count_row_ids(known, ""), "").expand()[0].tolist()
        if isinstance(known, bytes)
        else [],
    }
