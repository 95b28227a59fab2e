"""Plan how an index segment follows concurrent rewrites: its coverage in the newest version, and how its entries move.

Entries name rows by address, so a rewrite of the fragments changes them. The segment gives up fragments that it cannot
remap: those rewritten together with fragments it does not cover, and those with new values. Queries scan these
fragments until the next maintenance.
"""

from __future__ import annotations

from dataclasses import replace

from pyroaring import FrozenBitMap

from lance_ops.committers import Committer
from lance_ops.core.errors import InvalidInput, ObjectNotFound, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.store import Store
from lance_ops.table import IndexMetadata, Manifest
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows import RowAddressMap
from lance_ops.transactions.committed import CommittedVersion, read_version
from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Compatible, Retry, judge
from lance_ops.transactions.conflicts.row_remapping import CommittedRewriteGroup
from lance_ops.transactions.conflicts.unchanged_fields import judge_indexed_fields
from lance_ops.transactions.footprint import remapped_coverage
from lance_ops.transactions.manifest_changes import fragments_with_changed_values
from lance_ops.transactions.operations import CreateIndex, Rewrite

__all__ = ["IndexRemap", "RemappedIndex", "remap_index"]


@dataclass(frozen=True)
class IndexRemap:
    """One rewrite of rows that an index covers: keep the entries of `fragments`, and remap their addresses."""

    fragments: FrozenBitMap
    address_map: RowAddressMap


@dataclass(frozen=True)
class RemappedIndex:
    """The newest version, what the index covers in it, and the remaps to apply to its entries, in order."""

    newest: Manifest
    fragment_bitmap: FrozenBitMap
    remaps: tuple[IndexRemap, ...] = ()


def remap_index(
    store: Store, committer: Committer, segment: IndexMetadata, base: Manifest, locations: FileLocations
) -> RemappedIndex | Retry:
    """Remap a new segment of row addresses from `base`, which it was built on; or return why it is of no use.

    `locations` are those of the table. Raises `StoreError`.
    """
    covered = segment.fragment_bitmap
    if covered is None:
        return Retry("its metadata does not say what it covers")
    vectors = DeletionVectors(store, locations)
    remaps: list[IndexRemap] = []
    before = base
    for version in range(base.version + 1, (committer.latest() or 0) + 1):
        try:
            committed = read_version(store, committer, version)
        except VersionNotFound:
            return Retry(f"version {version} was cleaned up")
        if committed.transaction is not None and isinstance(committed.transaction.operation, Rewrite):
            try:
                covered, remap = _through_rewrite(
                    committed.transaction.operation, before, committed.manifest, covered, vectors
                )
            except ObjectNotFound as error:
                return Retry(f"where its rows went is not known any more: a deletion file was cleaned up ({error})")
            except InvalidInput as error:
                return Retry(f"a rewrite does not say where its rows went ({error})")
            remaps += [] if remap is None else [remap]
        else:
            covered = covered - FrozenBitMap(fragments_with_changed_values(before, committed.manifest, segment.fields))
            if not _is_compatible(replace(segment, fragment_bitmap=covered), committed):
                return Retry(f"version {version} conflicts with it")
            if dropped := judge_indexed_fields(segment.fields, committed.manifest.schema):
                return dropped
        before = committed.manifest
    if covered.isdisjoint(FrozenBitMap(before.fragments.ids)):
        return Retry("nothing that it covers is left")
    return RemappedIndex(before, covered, tuple(remaps))


def _is_compatible(segment: IndexMetadata, committed: CommittedVersion) -> bool:
    theirs = committed.transaction.operation if committed.transaction else None
    return isinstance(judge(CreateIndex((segment,)), theirs), Compatible)


def _through_rewrite(
    rewrite: Rewrite, before: Manifest, made: Manifest, covered: FrozenBitMap, vectors: DeletionVectors
) -> tuple[FrozenBitMap, IndexRemap | None]:
    """Return what is covered after a rewrite, which made `made` from `before`, and how to remap the entries.

    The remap is None if no group that was covered in full moved rows.
    """
    ids_before, ids_made = FrozenBitMap(before.fragments.ids), FrozenBitMap(made.fragments.ids)
    usable, groups = covered, []
    for group in CommittedRewriteGroup.all_of(rewrite, made):
        old_ids, new_ids = group.fragment_ids
        old, new = FrozenBitMap(old_ids) & ids_before, FrozenBitMap(new_ids) & ids_made
        if covered.isdisjoint(old):
            continue
        if old <= covered:
            groups.append(group.rewritten_group(vectors))
        else:
            usable = usable - old
        covered = remapped_coverage(covered, old, new)
    return covered, IndexRemap(usable, RowAddressMap(tuple(groups))) if groups else None
