"""Merge deletions of two writers in the same fragments.

Both wrote a whole deletion vector, each knowing only the rows that were deleted in the version it read. If they deleted
different rows, the union is what both meant; if they share a row, one of them deleted (or updated) a row that was gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.names import DELETIONS_DIR, new_deletion_file_id
from lance_ops.store.contract import Store
from lance_ops.table import DeletionFile, Fragment, Manifest, decode_deletion_vector, encode_deletion_vector
from lance_ops.transactions.conflicts import Retry
from lance_ops.transactions.lookup import by_id
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations import Delete, Update

__all__ = ["DeletionVectors", "rebase"]


@dataclass
class DeletionVectors:
    """Deletion files of one table, and the paths of those written here."""

    store: Store
    written: list[str] = field(default_factory=list)

    def read(self, fragment: Fragment) -> BitMap:
        """Return a fragment's deleted offsets."""
        deletion_file = fragment.deletion_file
        if deletion_file is None:
            return BitMap()
        if deletion_file.base_id is not None:
            raise UnsupportedFeature("a deletion file under another base path", f"fragment {fragment.id}")
        path = f"{DELETIONS_DIR}/{deletion_file.name(fragment.id)}"
        return decode_deletion_vector(deletion_file, self.store.get(path), self.store.uri_of(path))

    def write(self, fragment_id: int, read_version: int, vector: BitMap) -> DeletionFile:
        """Write a fragment's whole deletion vector."""
        deletion_file, data = encode_deletion_vector(vector, read_version, new_deletion_file_id())
        path = f"{DELETIONS_DIR}/{deletion_file.name(fragment_id)}"
        self.written.append(path)
        self.store.put(path, data)
        return deletion_file


def rebase(
    operation: Operation, base: Manifest, newest: Manifest, fragment_ids: Iterable[int], vectors: DeletionVectors
) -> Operation | Retry:
    """Return the operation with deletion vectors that hold both writers' rows, or why it must be planned again.

    `operation` is as it was planned on `base`. Raises `UnsupportedFeature` for an operation without deletions.
    """
    if not isinstance(operation, Delete | Update):
        raise UnsupportedFeature(f"rebasing the operation {operation.name}")
    before, current = by_id(base.fragments), by_id(newest.fragments)
    shared = frozenset(fragment_ids)
    updated, emptied = [], []
    for fragment in operation.updated_fragments:
        if fragment.id not in shared:
            updated.append(fragment)
            continue
        known = vectors.read(before[fragment.id])
        ours = vectors.read(fragment) - known
        theirs = vectors.read(current[fragment.id])
        twice = ours & (theirs - known)
        if twice:
            return Retry(f"{len(twice)} rows of fragment {fragment.id} were deleted or updated by another")
        union = ours | theirs
        if len(union) == fragment.physical_rows:
            emptied.append(fragment.id)
        else:
            updated.append(replace(fragment, deletion_file=vectors.write(fragment.id, newest.version, union)))
    if isinstance(operation, Delete):
        gone = (*operation.deleted_fragment_ids, *emptied)
        return replace(operation, updated_fragments=tuple(updated), deleted_fragment_ids=gone)
    gone = (*operation.removed_fragment_ids, *emptied)
    return replace(operation, updated_fragments=tuple(updated), removed_fragment_ids=gone)
