"""Copy stable row ids and row versions from rewritten fragments to the new ones."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, RowVersions, encode_row_ids, encode_versions, offsets_in

__all__ = ["copy_lineage", "with_lineage"]


def copy_lineage(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> tuple[Fragment, ...]:
    """Return the new fragments with the ids and versions of their rows: the old fragments' live rows, in order.

    Raises `InvalidInput` if the numbers of rows differ.
    """
    ids, created, updated = [], [], []
    for fragment in old:
        lineage = snapshot.lineage(fragment)
        deleted = offsets_in(snapshot.deletion_vector(fragment))
        ids.append(lineage.row_ids.without(deleted))
        created.append(lineage.created_at_versions.without(deleted))
        updated.append(lineage.last_updated_at_versions.without(deleted))
    return with_lineage(snapshot.uri, new, RowIds.joined(ids), RowVersions.joined(created), RowVersions.joined(updated))


def with_lineage(
    uri: str, new: Sequence[Fragment], row_ids: RowIds, created: RowVersions, updated: RowVersions
) -> tuple[Fragment, ...]:
    """Return the new fragments with the ids and versions of their rows, which are given in the order of the rows.

    Raises `InvalidInput` if the numbers of rows differ.
    """
    counts = [fragment.physical_rows for fragment in new]
    if row_ids.num_rows != sum(counts):
        raise InvalidInput(f"{uri}: {row_ids.num_rows} rows were rewritten as {sum(counts)}")
    parts = zip(
        new,
        row_ids.split(counts),
        created.split(counts),
        updated.split(counts),
        strict=True,
    )
    return tuple(
        fragment.with_sequences(
            row_ids=encode_row_ids(fragment_ids),
            created_at_versions=encode_versions(created_at),
            last_updated_at_versions=encode_versions(updated_at),
        )
        for fragment, fragment_ids, created_at, updated_at in parts
    )
