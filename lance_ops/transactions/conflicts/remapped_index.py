"""Follow an index that was built on one version to the newest: where its entries are, and what it covers there.

Entries name rows by address, so a rewrite of the fragments moves them. What cannot be followed is given up piece by
piece: fragments that were rewritten together with others, or got new values, are scanned until the next maintenance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyroaring import FrozenBitMap

from lance_ops.committers import Committer
from lance_ops.core.errors import InvalidInput, ObjectNotFound, VersionNotFound
from lance_ops.store import Store
from lance_ops.table import IndexMetadata, Manifest
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows import RowAddressMap
from lance_ops.transactions.committed import CommittedVersion, read_version
from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Compatible, Retry, judge
from lance_ops.transactions.conflicts.remapped_rows import Move
from lance_ops.transactions.footprint import covered_after
from lance_ops.transactions.manifest_changes import with_other_values
from lance_ops.transactions.operations import CreateIndex, Rewrite

__all__ = ["IndexMove", "RemappedIndex", "remap_index"]


@dataclass(frozen=True)
class IndexMove:
    """A rewrite that moved rows of an index: of its entries those of `fragments` are of use, and moved like this."""

    fragments: FrozenBitMap
    moved: RowAddressMap


@dataclass(frozen=True)
class RemappedIndex:
    """The newest version, what the index covers there, and the rewrites to take its entries through, in order."""

    newest: Manifest
    fragment_bitmap: FrozenBitMap
    moves: tuple[IndexMove, ...] = ()


def remap_index(
    store: Store, committer: Committer, segment: IndexMetadata, base: Manifest, locations: FileLocations
) -> RemappedIndex | Retry:
    """Follow a new segment of row addresses from the version it was built on; or say why it is of no use there.

    `locations` are those of the table. Raises `StoreError`.
    """
    covered = segment.fragment_bitmap
    if covered is None:
        return Retry("it does not say what it covers")
    vectors = DeletionVectors(store, locations)
    moves: list[IndexMove] = []
    before = base
    for version in range(base.version + 1, (committer.latest() or 0) + 1):
        try:
            landed = read_version(store, committer, version)
        except VersionNotFound:
            return Retry(f"version {version} was cleaned up")
        if landed.transaction is not None and isinstance(landed.transaction.operation, Rewrite):
            try:
                covered, move = _through(landed.transaction.operation, landed, before, covered, vectors)
            except ObjectNotFound as error:
                return Retry(f"where its rows went cannot be told any more: a deletion file was cleaned up ({error})")
            except InvalidInput as error:
                return Retry(f"a rewrite does not say where its rows went ({error})")
            moves += [] if move is None else [move]
        else:
            covered = covered - FrozenBitMap(with_other_values(before, landed.manifest, segment.fields))
            ours = CreateIndex((replace(segment, fragment_bitmap=covered),))
            verdict = judge(ours, landed.transaction.operation if landed.transaction else None)
            if not isinstance(verdict, Compatible):
                return Retry(f"version {version} conflicts with it")
        before = landed.manifest
    if covered.isdisjoint(FrozenBitMap(before.fragments.ids)):
        return Retry("nothing that it covers is left")
    return RemappedIndex(before, covered, tuple(moves))


def _through(
    rewrite: Rewrite, landed: CommittedVersion, before: Manifest, covered: FrozenBitMap, vectors: DeletionVectors
) -> tuple[FrozenBitMap, IndexMove | None]:
    """Return what is covered after a rewrite, and how entries move; None where all that moves is given up."""
    present, made = FrozenBitMap(before.fragments.ids), FrozenBitMap(landed.manifest.fragments.ids)
    of_use, groups = covered, []
    for move in Move.all_of(rewrite, landed.manifest):
        old, new = (FrozenBitMap(ids) & there for ids, there in zip(move.moved, (present, made), strict=True))
        if covered.isdisjoint(old):
            continue
        if old <= covered:
            groups.append(move.rewritten(vectors))
        else:
            of_use = of_use - old
        covered = covered_after(covered, old, new)
    return covered, IndexMove(of_use, RowAddressMap(tuple(groups))) if groups else None
