"""Remove old versions and files that nothing needs.

    plan_cleanup(snapshot, options) -> CleanupPlan          what would go, and why it may
    execute(snapshot, plan) -> CleanupStats                 batches written down, manifests first, then files

A manifest goes before the files that only it names: whoever still holds the version's number gets a clear
`VersionNotFound`, never a version with holes. Before the first deletion the newest versions are read again, and what
a commit since the plan names is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lance_ops.core.errors import StoreError
from lance_ops.maintenance.cleanup_plan import CleanupOptions, CleanupPlan, NamedFiles, plan_cleanup
from lance_ops.snapshot.batches import checkpoint_batches
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.store import ObjectInfo, Store
from lance_ops.transactions import keep_token, read_version

__all__ = [
    "CleanupExplanation",
    "CleanupOptions",
    "CleanupPlan",
    "CleanupStats",
    "cleanup_old_versions",
    "execute",
    "explain_cleanup_old_versions",
    "plan_cleanup",
]

DEFAULT_MAX_FILES = 1000


@dataclass(frozen=True)
class CleanupStats:
    """What a clean-up removed, or would remove; the reference's fields."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    deletion_files_removed: int = 0
    index_files_removed: int = 0
    transaction_files_removed: int = 0
    failed_deletes: int = 0


@dataclass(frozen=True)
class CleanupExplanation:
    """A dry run: the numbers, and with `include_files` the first `candidate_file_limit` files that would go."""

    read_version: int
    stats: CleanupStats
    candidate_files: tuple[str, ...]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def cleanup_old_versions(snapshot: Snapshot, options: CleanupOptions | None = None) -> CleanupStats:
    """Plan on the newest version and execute; see `plan_cleanup` for the errors."""
    newest = snapshot.latest()
    return execute(newest, plan_cleanup(newest, options or CleanupOptions()))


def explain_cleanup_old_versions(
    snapshot: Snapshot,
    options: CleanupOptions | None = None,
    include_files: bool = False,
    max_files: int = DEFAULT_MAX_FILES,
) -> CleanupExplanation:
    """Say what `cleanup_old_versions` would remove now, and remove nothing."""
    newest = snapshot.latest()
    plan = plan_cleanup(newest, options or CleanupOptions())
    paths = [info.path for info in (*plan.manifests, *plan.files)]
    warnings = tuple(f"version {version} is old but tagged: kept" for version in plan.kept_for_tags)
    return CleanupExplanation(
        read_version=plan.read_version,
        stats=_stats(plan, plan.files, failed=0),
        candidate_files=tuple(paths[:max_files]) if include_files else (),
        candidate_files_truncated=include_files and len(paths) > max_files,
        candidate_file_limit=max_files,
        warnings=warnings,
    )


def execute(snapshot: Snapshot, plan: CleanupPlan) -> CleanupStats:
    """Delete what the plan lists and no version committed since then names."""
    if plan.old_versions:
        checkpoint_batches(snapshot)
    for version in plan.old_versions:
        keep_token(snapshot.store, read_version(snapshot.store, snapshot.committer, version))
    since = _named_since(snapshot, plan.read_version)
    files = tuple(info for info in plan.files if info.path not in since)
    pace = _Pace(plan.options.delete_rate_limit)
    try:
        for version in plan.old_versions:
            pace.wait()
            snapshot.committer.remove(version)
    except StoreError:  # a version that is still there needs its files
        return CleanupStats(failed_deletes=1)
    deleted, failed = _delete(snapshot.store, files, pace)
    return _stats(plan, deleted, failed)


def _named_since(snapshot: Snapshot, version: int) -> NamedFiles:
    named = NamedFiles()
    for newer in snapshot.committer.versions():
        if newer > version:
            named.add(snapshot.at(newer).manifest)
    return named


class _Pace:
    """At most so many deletions a second."""

    def __init__(self, per_second: int | None) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()

    def wait(self) -> None:
        if self._interval:
            time.sleep(max(self._next - time.monotonic(), 0))
            self._next = max(self._next, time.monotonic()) + self._interval


def _delete(store: Store, infos: Iterable[ObjectInfo], pace: _Pace) -> tuple[tuple[ObjectInfo, ...], int]:
    deleted, failed = [], 0
    for info in infos:
        pace.wait()
        try:
            store.delete(info.path)
            deleted.append(info)
        except StoreError:
            failed += 1  # counted and left for the next clean-up
    return tuple(deleted), failed


def _stats(plan: CleanupPlan, deleted: Iterable[ObjectInfo], failed: int) -> CleanupStats:
    gone = {info.path for info in deleted}

    def within(infos: Iterable[ObjectInfo]) -> Iterator[ObjectInfo]:
        return (info for info in infos if info.path in gone)

    return CleanupStats(
        bytes_removed=sum(info.size_bytes for info in (*within(plan.files), *plan.manifests)),
        old_versions=len(plan.old_versions),
        data_files_removed=len(list(within(plan.data_files))),
        deletion_files_removed=len(list(within(plan.deletion_files))),
        index_files_removed=len(list(within(plan.index_files))),
        transaction_files_removed=len(list(within(plan.transaction_files))),
        failed_deletes=failed,
    )
