"""Count the rows that one version inserted, updated and deleted, and find the newest version that changed any.

The numbers follow from a version's manifest and that of the version before.

Rows written are those of fragments that are new, rows removed those of fragments that are gone, and those newly marked
as deleted. What they mean follows from the operation.
"""

from __future__ import annotations

from datetime import datetime

from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot, history
from lance_ops.table import Fragment
from lance_ops.transactions import CommittedVersion

__all__ = ["LastChange", "RowChanges", "changed_rows", "last_change", "operation_of", "row_changes"]

_SAME_ROWS = frozenset({"CreateIndex", "Project", "ReserveFragments", "Rewrite", "UpdateBases", "UpdateConfig"})
"""Operations that insert, update and delete no row, whatever the version before is."""
_UPDATES = "Update"
_EXCHANGES = ("Overwrite", "Restore")
"""Operations after which a fragment's id may name other rows than before."""


@dataclass(frozen=True)
class RowChanges:
    """What a version did to the table's rows; `updated` is None if the manifests do not tell."""

    inserted: int = 0
    updated: int | None = 0
    deleted: int = 0


@dataclass(frozen=True)
class LastChange:
    """A version after which no other one changed rows, and when it was committed, if its writer stated that."""

    version: int
    committed_at: datetime | None


def last_change(newest: Snapshot, above: int = 0) -> LastChange | None:
    """Return the newest version above `above` that inserted, updated or deleted rows.

    None if no version above it did. A version whose predecessor is not retained counts as a change, unless its
    operation changes no rows. With `above=0`, the oldest retained version stands for what is not retained. The
    versions are read newest first, as far as needed: one manifest each.
    """
    past = history(newest)
    current = next(past, None)
    while current is not None and current.version > above:
        earlier = next(past, None)
        before = None if earlier is None else newest.with_manifest(earlier.manifest)
        after = newest.with_manifest(current.manifest)
        if (earlier is None and above == 0) or changed_rows(before, after, operation_of(current)):
            return LastChange(current.version, current.manifest.timestamp)
        current = earlier
    return None


def changed_rows(before: Snapshot | None, after: Snapshot, operation: str) -> bool:
    """Return whether a version inserted, updated or deleted rows; True if the manifests do not tell."""
    return row_changes(before, after, operation) != RowChanges()


def operation_of(committed: CommittedVersion) -> str:
    """Return the name of the operation that made a version, `?` if its transaction was removed."""
    stored = committed.stored_transaction
    return stored.operation_type.__name__ if stored else "?"


def row_changes(before: Snapshot | None, after: Snapshot, operation: str) -> RowChanges | None:
    """Return what `operation` did between a version and the one before, which is None for the first version.

    None if the manifests do not tell: the operation may change rows and the version before is not retained, or the
    operation's name is not known. An `Update` counts as updated rows as far as it both removes and writes some. So a
    merge that deletes some rows and inserts as many others counts as an update.
    """
    if operation in _SAME_ROWS:
        return RowChanges()
    if before is None:
        return RowChanges(inserted=after.num_rows) if after.version == 1 else None
    if after.version != before.version + 1 or operation == "?":
        return None
    written, removed, rewritten = _moved(before, after, exchanges=operation in _EXCHANGES)
    if operation != _UPDATES:
        return RowChanges(inserted=written, deleted=removed)
    both = min(written, removed)
    return RowChanges(written - both, None if rewritten else both, removed - both)


def _moved(before: Snapshot, after: Snapshot, *, exchanges: bool) -> tuple[int, int, bool]:
    """Return the rows written, the rows removed, and whether a fragment that stayed has other files."""
    older, newer = before.fragments_by_id, after.fragments_by_id
    written = removed = 0
    rewritten = False
    for fragment_id, fragment in newer.items():
        was = older.get(fragment_id)
        if was is None or (exchanges and not _share_a_file(was, fragment)):
            written += after.num_live_rows(fragment)
        elif was != fragment:
            change = after.num_live_rows(fragment) - before.num_live_rows(was)
            written, removed = written + max(change, 0), removed + max(-change, 0)
            rewritten = rewritten or was.files != fragment.files
    for fragment_id, was in older.items():
        now = newer.get(fragment_id)
        if now is None or (exchanges and not _share_a_file(was, now)):
            removed += before.num_live_rows(was)
    return written, removed, rewritten


def _share_a_file(one: Fragment, other: Fragment) -> bool:
    return bool({file.path for file in one.files} & {file.path for file in other.files})
