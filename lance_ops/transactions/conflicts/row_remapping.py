"""Remap rows through rewrites: from their offsets in the old fragments to their offsets in the new ones.

A rewrite leaves out the rows that were deleted in the version it read, and keeps the others in order. So the i-th
surviving row of a group's old fragments is the i-th row of its new fragments. The group itself names the deletion
vectors that the writer read, so this holds for every writer of the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.table import Manifest
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap, bitmap_of, offsets_in
from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Retry, RewrittenFragments
from lance_ops.transactions.operations import Rewrite, RewriteGroup

__all__ = ["CommittedRewriteGroup", "OffsetsByFragment", "remapped_offsets"]

OffsetsByFragment: TypeAlias = dict[int, BitMap]
"""Physical offsets of rows, by fragment."""


@dataclass(frozen=True)
class CommittedRewriteGroup:
    """One group of a committed rewrite; `new_ids` are the ids that its new fragments have in the table."""

    group: RewriteGroup
    new_ids: tuple[int, ...]

    @classmethod
    def all_of(cls, rewrite: Rewrite, made: Manifest) -> list[CommittedRewriteGroup]:
        """Return the groups of the rewrite that made the version `made`.

        The commit may have assigned the ids, so the new fragments are found by their files. A fragment that lost all of
        its rows is not in the version, and keeps the id that the group gives it.
        """
        ids = {file.path: fragment.id for fragment in made.fragments for file in fragment.files}
        return [
            cls(
                group, tuple(ids.get(new.files[0].path, new.id) if new.files else new.id for new in group.new_fragments)
            )
            for group in rewrite.groups
        ]

    @property
    def fragment_ids(self) -> RewrittenFragments:
        """The ids of the old and of the new fragments."""
        return frozenset(old.id for old in self.group.old_fragments), frozenset(self.new_ids)

    def remap(self, rows: OffsetsByFragment, vectors: DeletionVectors) -> OffsetsByFragment | Retry:
        """Return where the rows are after the rewrite; rows in other fragments keep their offsets."""
        old, _ = self.fragment_ids
        rewritten = {key: offsets for key, offsets in rows.items() if key in old}
        if not rewritten:
            return rows
        remapped = remapped_offsets(self.group, rewritten, vectors)
        if isinstance(remapped, Retry):
            return remapped
        in_new = {key: offsets for key, offsets in zip(self.new_ids, remapped, strict=True) if offsets}
        return {key: offsets for key, offsets in rows.items() if key not in old} | in_new

    def rewritten_group(self, vectors: DeletionVectors) -> RewrittenGroup:
        """Return this group's part of an `RowAddressMap`.

        Raises `ObjectNotFound` if a deletion vector is gone, `InvalidInput` if the group does not say where rows went.
        """
        return _rewritten_group(self.group, self.new_ids, vectors)


def remapped_offsets(group: RewriteGroup, rows: Mapping[int, BitMap], vectors: DeletionVectors) -> list[BitMap] | Retry:
    """Return the offsets of rows of a group's old fragments in each of its new fragments, in their order.

    Returns `Retry` if a row did not survive the rewrite. Raises `ObjectNotFound` if a deletion vector is gone.
    """
    try:
        rewritten = _rewritten_group(group, range(len(group.new_fragments)), vectors)
        addresses = np.concatenate([row_addrs(key, offsets_in(offsets)) for key, offsets in rows.items()])
        addresses = RowAddressMap((rewritten,)).remap(addresses)
    except InvalidInput as error:
        return Retry(f"a rewrite does not say where its rows went ({error})")
    num_gone = int(np.count_nonzero(addresses == np.uint64(TOMBSTONE_ROW)))
    if num_gone:
        return Retry(f"{num_gone} rows of fragments {sorted(rows)[:5]} were deleted or updated by another writer")
    positions, offsets = fragment_of(addresses), offset_of(addresses).astype(np.uint32)
    return [bitmap_of(offsets[positions == np.uint64(position)]) for position in range(len(group.new_fragments))]


def _rewritten_group(group: RewriteGroup, new_ids: Iterable[int], vectors: DeletionVectors) -> RewrittenGroup:
    vectors.read_ahead(group.old_fragments)
    return RewrittenGroup(
        tuple(OldFragment(old.id, old.physical_rows, offsets_in(vectors.read(old))) for old in group.old_fragments),
        tuple(NewFragment(new_id, new.physical_rows) for new_id, new in zip(new_ids, group.new_fragments, strict=True)),
    )
