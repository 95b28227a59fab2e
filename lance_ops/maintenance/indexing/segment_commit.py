"""Commit a new index segment, remapped first if concurrent compactions moved the rows that it covers.

A compaction of the same rows may finish while an index is built. The new entries are still right except for their
addresses, so they are remapped through the compaction's address map, and no value is read again.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from lance_ops.core.errors import RetryableConflict
from lance_ops.core.file_names import INDICES_DIR
from lance_ops.indices import RowKey, load_index
from lance_ops.reading import row_key_of
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata
from lance_ops.transactions import (
    CreateIndex,
    PendingFiles,
    RemappedIndex,
    Retry,
    remap_index,
)
from lance_ops.writing import commit_operation

__all__ = ["commit_segment"]


def commit_segment(snapshot: Snapshot, new: IndexMetadata, replaced: tuple[IndexMetadata, ...]) -> Snapshot:
    """Commit a segment that was built on this snapshot, in the place of all segments of its name that it `replaced`.

    Fragments that it cannot cover any more are left to the next maintenance. Raises `RetryableConflict` where nothing
    of it is of use, and what `transactions.commit` does; then its files are deleted, unless the outcome is unknown.
    """
    while True:
        pending = PendingFiles.at(snapshot.store, new.paths(), durable=False)
        with pending.abandoned_unless_committed():
            try:
                return commit_operation(snapshot, CreateIndex((new,), replaced), pending=pending.kept_on_failure())
            except RetryableConflict:
                followed = _follow(snapshot, new)
                if followed is None:
                    raise
            moved = _moved(snapshot, new, followed)
        if moved.uuid != new.uuid:
            pending.abandon()
        snapshot, new = snapshot.with_manifest(followed.newest), moved
        replaced = tuple(index for index in snapshot.manifest.indices if index.name == new.name)


def _follow(snapshot: Snapshot, new: IndexMetadata) -> RemappedIndex | None:
    """Return how a segment gets to the newest version; None where it cannot, or is there already."""
    if row_key_of(snapshot, new) is not RowKey.ADDRESS:
        return None
    followed = remap_index(snapshot.store, snapshot.committer, new, snapshot.manifest, snapshot.file_locations)
    return None if isinstance(followed, Retry) or followed.newest.version == snapshot.version else followed


def _moved(snapshot: Snapshot, new: IndexMetadata, followed: RemappedIndex) -> IndexMetadata:
    """Write a segment with its entries where their rows are in the newest version."""
    moved = new
    for remap in followed.remaps:
        new_id = uuid.uuid4()
        try:
            index = load_index(snapshot.store, replace(moved, fragment_bitmap=remap.fragments))
            files = index.remap(remap.address_map, snapshot.store.child(f"{INDICES_DIR}/{new_id}"))
        finally:
            if moved is not new:
                PendingFiles.at(snapshot.store, moved.paths()).abandon()
        moved = replace(moved, uuid=new_id, files=files)
    return replace(moved, fragment_bitmap=followed.fragment_bitmap, dataset_version=followed.newest.version)
