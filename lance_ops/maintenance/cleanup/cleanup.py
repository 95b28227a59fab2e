"""Remove old versions and the files that no retained version names.

    plan_cleanup(snapshot, options) -> CleanupPlan          the versions and files to remove
    execute(snapshot, plan) -> CleanupStats                 checkpoint the batches, remove manifests, then files

Clean-up first announces the versions that it removes, so that no caller tags or pins them any more
(`refs.announced_removals`). It removes a manifest before the files that only this manifest names: a reader that still
has the version's number gets `VersionNotFound`, never a version with missing files. After that nobody can name an old
version's files any more. So clean-up then reads tags, pins, branches and the newest versions again, and keeps the files
that they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lance_ops.core.errors import UnsupportedFeature, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.batch_ledger import checkpoint_batches
from lance_ops.maintenance.cleanup.cleanup_options import CleanupBounds, CleanupOptions
from lance_ops.maintenance.cleanup.cleanup_plan import CleanupPlan, plan_cleanup
from lance_ops.maintenance.cleanup.named_files import NamedFiles, add_named_by_others, detached_versions
from lance_ops.maintenance.cleanup.paced_deletes import Pace, delete_by_tasks, delete_files
from lance_ops.maintenance.cleanup.shared_work import CleanupTasks
from lance_ops.maintenance.cleanup.version_removal import (
    begin_protected_versions,
    check_same_dataset,
    remove_old_versions,
)
from lance_ops.refs import UNVERIFIED_AGE, announced_removal, branch_of, branch_remains, list_branches, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo
from lance_ops.transactions import read_manifest

__all__ = [
    "CleanupExplanation",
    "CleanupOptions",
    "CleanupPlan",
    "CleanupStats",
    "cleanup_old_versions",
    "execute",
    "explain_cleanup_old_versions",
    "explain_with_bounds",
    "plan_cleanup",
]

DEFAULT_MAX_FILES = 1000

_DELETES_AT_ONCE = 16
_MOST_NAMED = 5


@dataclass(frozen=True)
class CleanupStats:
    """What a clean-up removed, or would remove: the reference's fields.

    `orphan_bytes` are besides those of files that no version names and that are still there; a dry run leaves all.
    """

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    deletion_files_removed: int = 0
    index_files_removed: int = 0
    transaction_files_removed: int = 0
    failed_deletes: int = 0
    orphan_bytes: int = 0


@dataclass(frozen=True)
class CleanupExplanation:
    """The result of a dry run; with `include_files` it lists the first `candidate_file_limit` files to remove.

    `old_versions` are the numbers of the versions to remove.
    """

    read_version: int
    stats: CleanupStats
    candidate_files: tuple[str, ...]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    old_versions: tuple[int, ...] = ()


def cleanup_old_versions(
    snapshot: Snapshot, options: CleanupOptions | None = None, tasks: CleanupTasks | None = None
) -> CleanupStats:
    """Plan on the newest version and execute, with `tasks` for large parts of it; see `plan_cleanup` for the errors."""
    newest = snapshot.latest()
    return execute(newest, plan_cleanup(newest, options or CleanupOptions(), tasks), tasks)


def explain_cleanup_old_versions(
    snapshot: Snapshot,
    options: CleanupOptions | None = None,
    include_files: bool = False,
    max_files: int = DEFAULT_MAX_FILES,
    tasks: CleanupTasks | None = None,
) -> CleanupExplanation:
    """Return what `cleanup_old_versions` would remove now; nothing is removed."""
    return explain_with_bounds(snapshot, options, include_files, max_files, tasks)[0]


def explain_with_bounds(
    snapshot: Snapshot,
    options: CleanupOptions | None = None,
    include_files: bool = False,
    max_files: int = DEFAULT_MAX_FILES,
    tasks: CleanupTasks | None = None,
) -> tuple[CleanupExplanation, CleanupBounds]:
    """Explain a clean-up, and return the bounds with which a later one removes no more than this explanation says."""
    newest = snapshot.latest()
    plan = plan_cleanup(newest, options or CleanupOptions(), tasks)
    branches = list_branches(reference_store(newest))
    paths = [info.path for info in (*plan.manifests, *plan.files)]
    warnings = (
        *(f"version {version} is old but tagged: kept" for version in plan.kept_for_tags),
        *_warning_of_pins(plan.kept_for_pins),
        *(
            f"version {version} is tagged or pinned, but missing: no file is removed"
            for version in plan.missing_versions
        ),
        *(
            f"branch {name!r} was not created or removed completely, unless another process is doing so now: run "
            "branches.delete to remove its files"
            for name in branch_remains(newest)
        ),
    )
    stats = _stats(plan, (*plan.files, *plan.manifests), failed=0)
    explanation = CleanupExplanation(
        read_version=plan.read_version,
        stats=replace(stats, orphan_bytes=_size_bytes(plan.orphans)),
        candidate_files=tuple(paths[:max_files]) if include_files else (),
        candidate_files_truncated=include_files and len(paths) > max_files,
        candidate_file_limit=max_files,
        referenced_branches=tuple(name for name, one in branches.items() if one.parent_branch == branch_of(newest)),
        warnings=warnings,
        old_versions=tuple(sorted(plan.old_versions)),
    )
    return explanation, CleanupBounds(frozenset(plan.old_versions), plan.planned_at)


def _warning_of_pins(versions: Sequence[int]) -> Iterator[str]:
    if versions:
        more = len(versions) - _MOST_NAMED
        named = ", ".join(map(str, versions[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
        yield (
            f"clean-up keeps old versions that running work has pinned: {named}; if the work was killed, its pin "
            f"counts until {UNVERIFIED_AGE.days} days after the work began"
        )


def execute(snapshot: Snapshot, plan: CleanupPlan, tasks: CleanupTasks | None = None) -> CleanupStats:
    """Remove the versions and files of the plan, except files that a version now needs.

    A version that cannot be removed keeps its files and counts as a failed deletion, as does each file that cannot be
    deleted. They are left to the next clean-up.

    If a version that stays since the plan has a feature that this release cannot write, nobody can tell which files it
    needs. Then all files stay, and the next plan is refused with the reason.

    Raises `IncompatibleTransaction` if the dataset of the plan was removed and another one created under its name.
    """
    checkpoint = partial(_checkpoint_batches, snapshot, plan)
    checkpoint_begun = snapshot.store.begin_call(checkpoint) if plan.old_versions else None
    with announced_removal(snapshot, plan.old_versions):
        if checkpoint_begun is not None:
            checkpoint_begun()  # no version may go before its batches are written down
        return _execute(snapshot, plan, tasks)


def _checkpoint_batches(snapshot: Snapshot, plan: CleanupPlan) -> None:
    """Write down the batches of all versions, unless another dataset is in the place of the plan's."""
    if plan.batch_events:
        check_same_dataset(snapshot)
    checkpoint_batches(snapshot.store, plan.read_version, plan.batch_events)


def _execute(snapshot: Snapshot, plan: CleanupPlan, tasks: CleanupTasks | None) -> CleanupStats:
    pace = Pace(plan.options.delete_rate_limit)
    needed = NamedFiles(snapshot.uri)
    removed: set[int] = set()
    num_failed = 0
    knows_needed = True
    for outcome in remove_old_versions(snapshot, plan, pace):
        removed.update(old.number for old in outcome.removed)
        num_failed += len(outcome.failed)
        try:
            for old in outcome.remaining:
                needed.add(old.manifest)
        except UnsupportedFeature:
            knows_needed = False
    store = snapshot.store
    detached = store.begin_call(partial(detached_versions, store, snapshot.committer))
    branches = store.begin_call(partial(list_branches, reference_store(snapshot)))
    protected = begin_protected_versions(snapshot, plan)
    existing = [*snapshot.committer.versions(), *detached()]
    try:
        _add_named_by_unplanned(needed, snapshot, plan, existing)
        add_named_by_others(needed, snapshot, branches(), tasks)
    except UnsupportedFeature:
        knows_needed = False
    # Somebody may hold a version that does not exist and that this clean-up did not remove. The clean-up that removed
    # it will put it back. Until then nobody can read which files it names.
    is_missing_one = protected().missing_among(removed.union(existing), snapshot.version, snapshot.committer)
    files = _unneeded(plan, needed) if knows_needed and not is_missing_one else []
    at_once = plan.options.delete_concurrency or _DELETES_AT_ONCE
    gone = set(plan.old_versions).difference(existing)
    deleted = files  # perhaps, if a task is lost
    try:
        if tasks is None or len(files) <= tasks.deletes_per_task:
            deleted, failed = delete_files(store, files, pace, at_once)
        else:
            deleted, failed = delete_by_tasks(snapshot, files, tasks, plan.options.delete_rate_limit, at_once)
    finally:
        if gone and deleted:
            _remove_versions_with_holes(snapshot, gone, deleted)
    manifests = {snapshot.committer.location(version) for version in removed}
    deleted += [info for info in plan.manifests if info.path in manifests]
    return _stats(plan, deleted, num_failed + len(failed))


def _add_named_by_unplanned(needed: NamedFiles, snapshot: Snapshot, plan: CleanupPlan, existing: Iterable[int]) -> None:
    """Add the files of versions that the plan does not keep: newer ones, and those that another clean-up put back."""
    for version in set(existing).difference(plan.kept_versions):
        with suppress(VersionNotFound):  # another clean-up removed it
            needed.add(read_manifest(snapshot.store, snapshot.committer, version))


def _unneeded(plan: CleanupPlan, needed: NamedFiles) -> list[ObjectInfo]:
    if not (needed.paths or needed.index_folders):
        return [*plan.files]
    return [info for info in plan.files if info.path not in needed]


def _remove_versions_with_holes(snapshot: Snapshot, gone: set[int], deleted: Iterable[ObjectInfo]) -> None:
    """Remove versions that another clean-up put back while this one deleted their files."""
    for version in gone.intersection(snapshot.committer.versions()):
        named = NamedFiles(snapshot.uri)
        with suppress(VersionNotFound):  # the other clean-up removed it itself
            named.add(read_manifest(snapshot.store, snapshot.committer, version), is_kept=False)
            if any(info.path in named for info in deleted):
                snapshot.committer.remove(version)


def _stats(plan: CleanupPlan, deleted: Iterable[ObjectInfo], failed: int) -> CleanupStats:
    everything = (*plan.files, *plan.manifests)
    left = {info.path for info in everything}.difference([info.path for info in deleted])

    def left_of(infos: Sequence[ObjectInfo]) -> Sequence[ObjectInfo]:
        return [info for info in infos if info.path in left] if left else ()

    def deleted_of(infos: Sequence[ObjectInfo]) -> Sequence[ObjectInfo]:
        return [info for info in infos if info.path not in left] if left else infos

    return CleanupStats(
        bytes_removed=_size_bytes(deleted_of(everything)),
        old_versions=len(deleted_of(plan.manifests)),
        data_files_removed=len(deleted_of(plan.data_files)),
        deletion_files_removed=len(deleted_of(plan.deletion_files)),
        index_files_removed=len(deleted_of(plan.index_files)),
        transaction_files_removed=len(deleted_of(plan.transaction_files)),
        failed_deletes=failed,
        orphan_bytes=_size_bytes(left_of(plan.orphans)),
    )


def _size_bytes(infos: Iterable[ObjectInfo]) -> int:
    return sum([info.size_bytes for info in infos])
