"""Give rewritten rows, in a table of stable row ids, the ids and versions they had where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, RowVersions, encode_row_ids, encode_versions, offsets_in

__all__ = ["copy_lineage"]


def copy_lineage(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> tuple[Fragment, ...]:
    """Return the new fragments with what is known of their rows: the live ones of the old fragments, in that order.

    Raises `InvalidInput` if they are not as many.
    """
    ids, created, updated = [], [], []
    for fragment in old:
        lineage = snapshot.lineage(fragment)
        deleted = offsets_in(snapshot.deletion_vector(fragment))
        ids.append(lineage.row_ids.without(deleted))
        created.append(lineage.created_at_versions.without(deleted))
        updated.append(lineage.last_updated_at_versions.without(deleted))
    row_ids = RowIds.joined(ids)
    counts = [fragment.physical_rows for fragment in new]
    if row_ids.num_rows != sum(counts):
        raise InvalidInput(f"{snapshot.uri}: {row_ids.num_rows} rows were rewritten as {sum(counts)}")
    parts = zip(
        new,
        row_ids.split(counts),
        RowVersions.joined(created).split(counts),
        RowVersions.joined(updated).split(counts),
        strict=True,
    )
    return tuple(
        replace(
            fragment,
            row_ids=encode_row_ids(its_ids),
            created_at_versions=encode_versions(created_at),
            last_updated_at_versions=encode_versions(updated_at),
        )
        for fragment, its_ids, created_at, updated_at in parts
    )
