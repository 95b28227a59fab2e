"""Write remapped index segments for the rows that a compaction moved."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from uuid import UUID

from lance_ops.core.errors import RetryableConflict, UnsafePath, UnsupportedFeature
from lance_ops.core.file_names import INDICES_DIR
from lance_ops.indices import RemapOnlyType, RowKey, index_type_of, remap_only_type_of
from lance_ops.maintenance.indexing import remap_segment
from lance_ops.reading import awaits_remap, row_key_of
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import IndexMetadata
from lance_ops.table.rows import RowAddressMap
from lance_ops.transactions import Abandonable, PendingFiles, RewrittenIndex

__all__ = ["IndexRemap", "needs_remap"]


def needs_remap(snapshot: Snapshot, segment: IndexMetadata, *, keeps_order: bool = True) -> bool:
    """Return whether a segment must be remapped when its rows move: whether it names them by address.

    A segment that describes rows together, as zones, has no use for rows in another order. It is not remapped unless
    the rows keep theirs, so it covers none of the new fragments until `optimize_indices` describes these.

    A segment that names rows by stable row id stays valid. A segment that cannot be remapped loses the moved fragments
    from its coverage in a table with stable row ids (`Rewrite` removes them), and scans read those rows. In any other
    table such a segment raises `UnsupportedFeature`. So does a segment whose last remap was deferred. A segment whose
    files are lost is not remapped: scans do not use it, and `optimize_indices` rebuilds it.

    A segment of a type that this library only remaps is remapped if the table has no stable row ids. A bloom filter is
    never remapped, as in the reference.
    """
    if awaits_remap(snapshot, segment):
        raise UnsupportedFeature(
            "moving the rows of an index whose last remap was deferred: run optimize_indices first",
            f"index {segment.name!r}",
        )
    try:
        remap_only = remap_only_type_of(segment)
        if remap_only is not None:
            by_address = remap_only.names_rows and not snapshot.manifest.uses_stable_row_ids
            return by_address and _has_known_files(snapshot, segment, remap_only)
        if row_key_of(snapshot, segment) is not RowKey.ADDRESS or snapshot.find_index_root(segment) is None:
            return False
        return keeps_order or index_type_of(segment).names_rows
    except UnsafePath:
        return False
    except UnsupportedFeature as error:
        if snapshot.manifest.uses_stable_row_ids:
            return False
        raise UnsupportedFeature(
            f"moving the rows of {error.feature} (drop the index, and build it again afterwards)", error.where
        ) from error


def _has_known_files(snapshot: Snapshot, segment: IndexMetadata, remap_only: RemapOnlyType) -> bool:
    """Return whether a root holds the segment; raise `UnsupportedFeature` for files of an unknown layout."""
    root = snapshot.find_index_root(segment)
    return root is not None and bool(remap_only.checked_files(root.child(segment.directory), segment))


class IndexRemap(Abandonable):
    """Remaps segments through one address map, each segment of the newest version once.

    Other writers may add or replace indices while fragments are rewritten. Then only the new segments are remapped, and
    the rewritten data stays in use. Tasks of the runner remap large segments.
    """

    def __init__(self, store: Store, moves: RowAddressMap, runner: Runner | None = None) -> None:
        self._store = store
        self._runner = runner
        self._moves = moves
        self._done: dict[UUID, RewrittenIndex] = {}

    @property
    def pending(self) -> PendingFiles:
        """The files of the segments that are of use so far."""
        return self._files_of(self._done.values())

    def abandon(self) -> None:
        """Delete the files of the segments that are of use so far."""
        self.pending.abandon()

    def covers(self, snapshot: Snapshot) -> bool:
        """Return whether the segments remapped so far are exactly those that this version needs remapped."""
        return self._done.keys() == {segment.uuid for segment in self._affected(snapshot)}

    def remap(self, snapshot: Snapshot) -> tuple[RewrittenIndex, ...]:
        """Write, for each segment of this version over a rewritten fragment, one of the same rows where they are now.

        The transaction that replaces the fragments also exchanges old ids for new ones in the segment's bitmap. Raises
        `RetryableConflict` for a segment over a part of the fragments that were rewritten together.
        """
        affected = list(self._affected(snapshot))
        for old_id in self._done.keys() - {segment.uuid for segment in affected}:
            self._files_of([self._done.pop(old_id)]).abandon()
        for segment in affected:
            self._check_whole(snapshot, segment)
        return tuple(self._done.get(segment.uuid) or self._remap(snapshot, segment) for segment in affected)

    def _affected(self, snapshot: Snapshot) -> Iterator[IndexMetadata]:
        old = self._moves.old_fragment_ids & snapshot.fragments_by_id.keys()
        return (
            index
            for index in snapshot.manifest.indices
            if not index.is_system
            and index.covers(old)
            and needs_remap(snapshot, index, keeps_order=self._moves.keeps_order)
        )

    def _check_whole(self, snapshot: Snapshot, segment: IndexMetadata) -> None:
        for group in self._moves.groups:
            old = {fragment.fragment_id for fragment in group.old} & snapshot.fragments_by_id.keys()
            if 0 < len(segment.covers(old)) < len(old):
                raise RetryableConflict(
                    f"{snapshot.uri}: index {segment.name!r} now covers only a part of the fragments {sorted(old)[:5]} "
                    "that were rewritten together: plan the compaction again on the newest version"
                )

    def _remap(self, snapshot: Snapshot, segment: IndexMetadata) -> RewrittenIndex:
        new_id = uuid.uuid4()
        store_out = snapshot.store.child(f"{INDICES_DIR}/{new_id}")
        files = remap_segment(snapshot, segment, self._moves, store_out, self._runner)
        rewritten = RewrittenIndex(segment.uuid, new_id, segment.details, segment.index_version or 0, files)
        self._done[segment.uuid] = rewritten
        return rewritten

    def _files_of(self, segments: Iterable[RewrittenIndex]) -> PendingFiles:
        """Return the files of remapped segments, which nobody has synced yet."""
        return PendingFiles.at(self._store, (path for segment in segments for path in segment.paths()), durable=False)
