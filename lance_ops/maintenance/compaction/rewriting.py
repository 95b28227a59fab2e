"""Merge small fragments, drop deleted rows, and remap the indices.

    plan_compaction(snapshot, options) -> CompactionPlan       pure
    execute_rewrite(task) -> RewriteOutcome                    any process: writes the live rows to new fragments
    commit_rewrites(snapshot, rewrites) -> new snapshot, metrics      reserves ids, remaps the indices, one Rewrite

A commit of its own reserves fragment ids, because the remapped indices must name the new fragments before the rewrite
is committed. The rewrite is committed against the *planned* version: rows that were deleted since then are deleted in
the new fragments too. The indices of the newest version are remapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.errors import RetryableConflict
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.compaction.compaction_plan import RewriteTask
from lance_ops.maintenance.compaction.index_remap import IndexRemap
from lance_ops.maintenance.compaction.live_rows import live_rows
from lance_ops.maintenance.compaction.rewritten_lineage import copy_lineage
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap, offsets_in
from lance_ops.transactions import PendingFiles, ReserveFragments, Rewrite, RewriteGroup
from lance_ops.writing import FragmentLimits, FragmentWriter, commit_operation

__all__ = [
    "CompactionMetrics",
    "MovedRows",
    "RewriteOutcome",
    "commit_moved_rows",
    "commit_rewrites",
    "discard_rewrite",
    "execute_rewrite",
]

_GATHERED_BYTES = 32 << 20
_LOST_RACES = 1000
"""Attempts of a commit. A lost race costs little compared with the rewrite, so the commit's timeout ends it first."""
_MOST_REMAPS = 10
"""The most attempts to remap the indices and commit, each after another writer has changed the indices. Each commit is
compared with all versions since the plan, so each takes longer, and clean-up keeps these versions meanwhile."""


@dataclass(frozen=True)
class CompactionMetrics:
    """What a compaction changed; files count data files and deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    @classmethod
    def of(cls, old: Sequence[Fragment], new: Sequence[Fragment]) -> Self:
        """Return what replacing the old fragments by the new ones changes."""
        return cls(
            fragments_removed=len(old),
            fragments_added=len(new),
            files_removed=sum(len(fragment.files) + (fragment.deletion_file is not None) for fragment in old),
            files_added=sum(len(fragment.files) for fragment in new),
        )

    def __add__(self, other: CompactionMetrics) -> CompactionMetrics:
        return CompactionMetrics(
            self.fragments_removed + other.fragments_removed,
            self.fragments_added + other.fragments_added,
            self.files_removed + other.files_removed,
            self.files_added + other.files_added,
        )


@dataclass(frozen=True)
class RewriteOutcome:
    """One rewritten group: the fragments read, their deletion vectors at that time, and the fragments written.

    The new files may not be durable until the commit syncs them.
    """

    read_version: int
    old_fragments: tuple[Fragment, ...]
    deleted_offsets: tuple[bytes, ...]
    new_fragments: tuple[Fragment, ...]

    def moved(self) -> RewrittenGroup:
        """Return the old and new fragments, from which row addresses are remapped."""
        old = tuple(
            OldFragment(fragment.id, fragment.physical_rows, offsets_in(BitMap.deserialize(deleted)))
            for fragment, deleted in zip(self.old_fragments, self.deleted_offsets, strict=True)
        )
        return RewrittenGroup(
            old, tuple(NewFragment(fragment.id, fragment.physical_rows) for fragment in self.new_fragments)
        )


def commit_rewrites(
    snapshot: Snapshot,
    rewrites: Sequence[RewriteOutcome],
    *,
    keep_files: bool = False,
    runner: Runner | None = None,
    file_version: FileVersion | None = None,
) -> tuple[Snapshot, CompactionMetrics]:
    """Commit rewrites that were planned on `snapshot`; see `compacting.compact_files` for the errors.

    On a definite failure every file of the rewrites is deleted, unless `keep_files`. A caller that may commit the same
    rewrites twice must keep them, because the version of the first commit names them. Tasks of the runner remap large
    indices; without one, this process remaps them all. `file_version` becomes that of new files of the table.
    """
    if not rewrites:
        return snapshot, CompactionMetrics()
    pending = _pending(snapshot.store, rewrites)
    pending = pending.kept_on_failure() if keep_files else pending
    num_new = sum(len(rewrite.new_fragments) for rewrite in rewrites)
    made = commit_moved_rows(snapshot, pending, num_new, lambda first: _moved(rewrites, first), runner, file_version)
    return made, _metrics(rewrites)


class MovedRows(NamedTuple):
    """The groups of a rewrite, their new fragments numbered, and where the rows went."""

    groups: tuple[RewriteGroup, ...]
    addresses: RowAddressMap


def commit_moved_rows(
    snapshot: Snapshot,
    pending: PendingFiles,
    num_new: int,
    number: Callable[[int], MovedRows],
    runner: Runner | None = None,
    file_version: FileVersion | None = None,
) -> Snapshot:
    """Commit a rewrite of `snapshot` into `num_new` fragments, and remap the indices.

    `number` gives the new fragments ids from its argument on. On a definite failure the pending files are deleted.
    """
    with pending.abandoned_on_failure():
        reserved = commit_operation(snapshot, ReserveFragments(num_new)) if num_new else snapshot.latest()
        moved = number((reserved.manifest.max_fragment_id or 0) - num_new + 1)
        remap = IndexRemap(snapshot.store, moved.addresses, runner)
    with pending.abandoned_unless_committed(), remap.abandoned_unless_committed():
        return _commit_beside_indices(snapshot, reserved, moved.groups, remap, pending, file_version)


def execute_rewrite(task: RewriteTask) -> RewriteOutcome:
    """Rewrite the task's live rows, in order, into new fragments; stable row ids are kept."""
    snapshot = task.snapshot.open()
    limits = FragmentLimits(task.target_rows_per_fragment, task.max_bytes_per_file)
    fragments = tuple(snapshot.fragments_by_id[fragment_id] for fragment_id in task.fragment_ids)
    deleted = tuple(snapshot.deletion_vector(fragment).serialize() for fragment in fragments)
    with FragmentWriter(snapshot.store, snapshot.schema, task.file_version, limits, durable=False) as writer:
        for table in _gathered(live_rows(snapshot, fragments)):
            writer.write(table)
        new = tuple(writer.finish())
        if snapshot.manifest.uses_stable_row_ids:
            new = copy_lineage(snapshot, fragments, new)
        return RewriteOutcome(snapshot.version, fragments, deleted, new)


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join small tables into ones of at least `_GATHERED_BYTES`, since a writer has a cost for each input table."""
    parts: list[pa.Table] = []
    size = 0
    for table in tables:
        parts.append(table)
        size += table.nbytes
        if size >= _GATHERED_BYTES:
            yield from _joined(parts)
            parts, size = [], 0
    yield from _joined(parts)


def _joined(parts: list[pa.Table]) -> list[pa.Table]:
    """Return the tables joined into one; unjoined if Arrow cannot, as for dictionaries with too many entries."""
    if len(parts) < 2:
        return parts
    try:
        return [pa.concat_tables(parts).combine_chunks()]
    except pa.ArrowException:
        return parts


def _commit_beside_indices(
    snapshot: Snapshot,
    newest: Snapshot,
    groups: tuple[RewriteGroup, ...],
    remap: IndexRemap,
    pending: PendingFiles,
    file_version: FileVersion | None,
) -> Snapshot:
    """Commit the groups after all files; after a conflict with a change of the indices, remap the present ones.

    No commit is under way while indices are remapped, so all files are deleted if that is interrupted. Raises
    `RetryableConflict` if no index has changed, and after `_MOST_REMAPS` attempts.
    """
    attempts = 0
    while True:
        attempts += 1
        with pending.abandoned_on_failure(), remap.abandoned_on_failure():
            operation = Rewrite(groups, remap.remap(newest))
        try:
            files = (pending + remap.pending).kept_on_failure()
            return commit_operation(
                snapshot, operation, pending=files, file_version=file_version, max_retries=_LOST_RACES
            )
        except RetryableConflict:
            if attempts == _MOST_REMAPS:
                raise
            newest = snapshot.latest()
            if remap.covers(newest):
                raise


def _moved(rewrites: Sequence[RewriteOutcome], first_id: int) -> MovedRows:
    numbered = []
    for rewrite in rewrites:
        fragments = tuple(
            replace(fragment, id=first_id + position) for position, fragment in enumerate(rewrite.new_fragments)
        )
        first_id += len(fragments)
        numbered.append(replace(rewrite, new_fragments=fragments))
    groups = tuple(RewriteGroup(rewrite.old_fragments, rewrite.new_fragments) for rewrite in numbered)
    return MovedRows(groups, RowAddressMap(tuple(rewrite.moved() for rewrite in numbered)))


def discard_rewrite(store: Store, rewrite: RewriteOutcome) -> None:
    """Delete the files that a task wrote."""
    _pending(store, [rewrite]).abandon()


def _pending(store: Store, rewrites: Sequence[RewriteOutcome]) -> PendingFiles:
    """Return the files that tasks wrote: `execute_rewrite` leaves them unsynced."""
    new = (fragment for rewrite in rewrites for fragment in rewrite.new_fragments)
    return PendingFiles.of_fragments(FileLocations(store), new, durable=False)


def _metrics(rewrites: Sequence[RewriteOutcome]) -> CompactionMetrics:
    old = [fragment for rewrite in rewrites for fragment in rewrite.old_fragments]
    new = [fragment for rewrite in rewrites for fragment in rewrite.new_fragments]
    return CompactionMetrics.of(old, new)
