"""Rewrite the indices whose rows a compaction moved."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lance_ops.core.address_map import AddressMap
from lance_ops.core.names import INDICES_DIR
from lance_ops.snapshot.commit import removing_on_failure
from lance_ops.snapshot.index_lookup import open_index
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.transactions import RewrittenIndex

__all__ = ["RemappedIndices", "remap_indices"]


@dataclass(frozen=True)
class RemappedIndices:
    """The new indices, for the transaction, and the files written for them."""

    rewritten: tuple[RewrittenIndex, ...]
    paths: tuple[str, ...]


def remap_indices(snapshot: Snapshot, moves: AddressMap) -> RemappedIndices:
    """Write, for each index that covers a rewritten fragment, an index of the same rows at their new addresses.

    The transaction that replaces the fragments also exchanges old ids for new ones in the index's fragment bitmap.
    """
    rewritten: list[RewrittenIndex] = []
    paths: list[str] = []
    with removing_on_failure(snapshot.store, paths):
        for index in snapshot.manifest.indices:
            if index.is_system or not index.covers(moves.old_fragment_ids):
                continue
            new_id = uuid.uuid4()
            folder = f"{INDICES_DIR}/{new_id}"
            files = open_index(snapshot, index).remap(moves, snapshot.store.child(folder))
            rewritten.append(RewrittenIndex(index.uuid, new_id, index.details, index.index_version or 0, files))
            paths += [f"{folder}/{file.path}" for file in files]
    return RemappedIndices(tuple(rewritten), tuple(paths))
