"""Follow rows through rewrites.

Who rewrites fragments leaves out the rows that were deleted in the version it read, and keeps the others in order: the
i-th survivor of a group's old fragments is the i-th row of its new ones. The group itself says which deletion vectors
those were, so this holds for every writer of the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.table import Manifest
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap, bitmap_of, offsets_in
from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Moved, Retry
from lance_ops.transactions.operations import Rewrite, RewriteGroup

__all__ = ["Move", "Rows", "follow"]

Rows: TypeAlias = dict[int, BitMap]
"""Physical offsets, by fragment."""


@dataclass(frozen=True)
class Move:
    """One group of a rewrite that landed; `new_ids` are the ids that its new fragments have in the table."""

    group: RewriteGroup
    new_ids: tuple[int, ...]

    @classmethod
    def all_of(cls, rewrite: Rewrite, made: Manifest) -> list[Move]:
        """Return the groups of the rewrite that made a version.

        Ids may have been given only then, so the new fragments are known by their files. One whose rows were all
        deleted is not there any more.
        """
        ids = {file.path: fragment.id for fragment in made.fragments for file in fragment.files}
        return [
            cls(
                group, tuple(ids.get(new.files[0].path, new.id) if new.files else new.id for new in group.new_fragments)
            )
            for group in rewrite.groups
        ]

    @property
    def moved(self) -> Moved:
        """The fragments before and after."""
        return frozenset(old.id for old in self.group.old_fragments), frozenset(self.new_ids)

    def follow(self, rows: Rows, vectors: DeletionVectors) -> Rows | Retry:
        """Return where rows are after the rewrite; those in other fragments stay."""
        old, _ = self.moved
        ours = {key: offsets for key, offsets in rows.items() if key in old}
        if not ours:
            return rows
        followed = follow(self.group, ours, vectors)
        if isinstance(followed, Retry):
            return followed
        moved = {key: offsets for key, offsets in zip(self.new_ids, followed, strict=True) if offsets}
        return {key: offsets for key, offsets in rows.items() if key not in old} | moved

    def rewritten(self, vectors: DeletionVectors) -> RewrittenGroup:
        """Return the map of the rows' addresses.

        Raises `ObjectNotFound` if a deletion vector is gone, `InvalidInput` if the group does not say where rows went.
        """
        return _rewritten(self.group, self.new_ids, vectors)


def follow(group: RewriteGroup, rows: Mapping[int, BitMap], vectors: DeletionVectors) -> list[BitMap] | Retry:
    """Return which offsets rows of a group's old fragments have, for each of its new fragments.

    A row that did not survive has none. Raises `ObjectNotFound` if a deletion vector is gone.
    """
    try:
        rewritten = _rewritten(group, range(len(group.new_fragments)), vectors)
        addresses = np.concatenate([row_addrs(key, offsets_in(offsets)) for key, offsets in rows.items()])
        addresses = RowAddressMap((rewritten,)).remap(addresses)
    except InvalidInput as error:
        return Retry(f"a rewrite does not say where its rows went ({error})")
    gone = int(np.count_nonzero(addresses == np.uint64(TOMBSTONE_ROW)))
    if gone:
        return Retry(f"{gone} rows of fragments {sorted(rows)[:5]} were deleted or updated by another")
    positions, offsets = fragment_of(addresses), offset_of(addresses).astype(np.uint32)
    return [bitmap_of(offsets[positions == np.uint64(position)]) for position in range(len(group.new_fragments))]


def _rewritten(group: RewriteGroup, new_ids: Iterable[int], vectors: DeletionVectors) -> RewrittenGroup:
    vectors.read_ahead(group.old_fragments)
    return RewrittenGroup(
        tuple(OldFragment(old.id, old.physical_rows, offsets_in(vectors.read(old))) for old in group.old_fragments),
        tuple(NewFragment(new_id, new.physical_rows) for new_id, new in zip(new_ids, group.new_fragments, strict=True)),
    )
