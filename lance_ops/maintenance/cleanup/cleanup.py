"""Remove old versions and files that nothing needs.

    plan_cleanup(snapshot, options) -> CleanupPlan          what would go, and why it may
    execute(snapshot, plan) -> CleanupStats                 batches written down, manifests first, then files

What is about to go is noted first, so that nobody is given it any more (`snapshot.removals`). A manifest goes before
the files that only it names: whoever still holds the version's number gets a clear `VersionNotFound`, never a version
with holes. When the manifests are gone, tags, pins, branches and the newest versions are read again, and what one of
them needs is left alone: nobody can name an old version's files any more after that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lance_ops.committers import Committer
from lance_ops.core.errors import StoreError, VersionNotFound
from lance_ops.core.map_ordered import map_ordered
from lance_ops.core.names import DATA_DIR, DELETIONS_DIR
from lance_ops.maintenance.batch_ledger import checkpoint_batches
from lance_ops.maintenance.cleanup.cleanup_plan import (
    CleanupOptions,
    CleanupPlan,
    NamedFiles,
    add_named_by_others,
    held_versions,
    plan_cleanup,
    versions_begun_with,
)
from lance_ops.refs import announced_removal, branch_of, list_branches, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo, Store
from lance_ops.table import Manifest
from lance_ops.transactions import Landed, has_grown, keep_token, read_manifest, read_version, token_of
from lance_ops.transactions.committed import decode_version

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

_VERSIONS_AT_ONCE = 64
_DELETES_AT_ONCE = 16


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
    branches = list_branches(reference_store(newest))
    paths = [info.path for info in (*plan.manifests, *plan.files)]
    warnings = (
        *(f"version {version} is old but tagged: kept" for version in plan.kept_for_tags),
        *(f"version {version} is tagged or pinned, and not there: no file goes" for version in plan.missing_versions),
    )
    return CleanupExplanation(
        read_version=plan.read_version,
        stats=_stats(plan, (*plan.files, *plan.manifests), failed=0),
        candidate_files=tuple(paths[:max_files]) if include_files else (),
        candidate_files_truncated=include_files and len(paths) > max_files,
        candidate_file_limit=max_files,
        referenced_branches=tuple(name for name, one in branches.items() if one.parent_branch == branch_of(newest)),
        warnings=warnings,
    )


def execute(snapshot: Snapshot, plan: CleanupPlan) -> CleanupStats:
    """Delete what the plan lists and no version that is there after all names.

    A version that cannot be deleted stays with its files; both are counted as failures or left for the next clean-up.
    """
    if plan.old_versions:
        checkpoint_batches(snapshot)
    with announced_removal(snapshot, plan.old_versions):
        return _execute(snapshot, plan)


def _execute(snapshot: Snapshot, plan: CleanupPlan) -> CleanupStats:
    pace = _Pace(plan.options.delete_rate_limit)
    needed = NamedFiles(snapshot.uri)
    removed: list[int] = []
    failed_versions: list[int] = []
    for at in range(0, len(plan.old_versions), _VERSIONS_AT_ONCE):
        versions = plan.old_versions[at : at + _VERSIONS_AT_ONCE]
        removed += _remove_versions(snapshot, plan, versions, needed, failed_versions, pace)
    there = snapshot.committer.versions()
    for version in set(there).difference(plan.kept_versions):  # newer ones, and those that another clean-up put back
        with suppress(VersionNotFound):  # another clean-up took it
            needed.add(read_manifest(snapshot.store, snapshot.committer, version))
    add_named_by_others(needed, snapshot, list_branches(reference_store(snapshot)))
    # What somebody holds since, and another clean-up took, it will put back: nobody can tell now what that names.
    missing = _held(snapshot, plan).keys() - {*there, *removed}
    files = [] if missing else [info for info in plan.files if info.path not in needed]
    at_once = plan.options.delete_concurrency or _DELETES_AT_ONCE
    deleted, failed = _delete(snapshot.store, files, pace, at_once)
    went = set(plan.old_versions).difference(there)
    if went and deleted:
        _remove_what_came_back(snapshot, went, deleted)
    manifests = {snapshot.committer.location(version) for version in removed}
    gone = [*deleted, *(info for info in plan.manifests if info.path in manifests)]
    return _stats(plan, gone, failed + len(failed_versions))


def _remove_versions(
    snapshot: Snapshot,
    plan: CleanupPlan,
    versions: Sequence[int],
    needed: NamedFiles,
    failed: list[int],
    pace: _Pace,
) -> list[int]:
    """Remove manifests and return their versions; note what fails, and the files of all that stay in `needed`.

    What is held since it was noted stays. The reference looks for no notes when it tags a version: what has a tag after
    its removal is put back.
    """
    store, committer = snapshot.store, snapshot.committer
    held = _held(snapshot, plan)
    before: Landed | None = None
    removed: dict[int, tuple[str, pa.Buffer, Manifest]] = {}
    for version in versions:
        try:
            location, data = committer.location(version), committer.read(version)
        except VersionNotFound:
            continue  # another clean-up took it
        landed = decode_version(store, committer, version, data)
        if before is None or before.version != version - 1:
            before = _read_if_there(snapshot, version - 1)
        stays, before = before if version - 1 not in removed else None, landed
        if version in held:
            needed.add(landed.manifest)
            continue
        if stays is not None:  # nobody could tell any more whether it is a ghost
            _keep_token(snapshot, stays, landed)
        _keep_token(snapshot, landed)
        pace.wait()
        if _is_removed(committer, version):
            removed[version] = location, data, landed.manifest
        else:
            failed.append(version)
            needed.add(landed.manifest)
    held = _held(snapshot, plan)
    for version in sorted(removed.keys() & held.keys()):
        location, data, manifest = removed[version]
        store.put_if_absent(location, data)
        if _has_its_files(snapshot, manifest):
            needed.add(manifest)
            del removed[version]
        else:
            committer.remove(version)
    return sorted(removed)


def _has_its_files(snapshot: Snapshot, manifest: Manifest) -> bool:
    """Whether no other clean-up took files of a version; one that does so later finds the version there."""
    named = NamedFiles(snapshot.uri)
    named.add(manifest)
    directories = (f"{DATA_DIR}/", f"{DELETIONS_DIR}/")
    there = (info.path for directory in directories for info in snapshot.store.list(directory[:-1]))
    return {path for path in named.paths if path.startswith(directories)}.issubset(there)


def _remove_what_came_back(snapshot: Snapshot, went: set[int], deleted: Iterable[ObjectInfo]) -> None:
    """Remove versions again that another clean-up put back while their files went."""
    for version in went.intersection(snapshot.committer.versions()):
        named = NamedFiles(snapshot.uri)
        with suppress(VersionNotFound):  # the other noticed
            named.add(read_manifest(snapshot.store, snapshot.committer, version))
            if any(info.path in named for info in deleted):
                snapshot.committer.remove(version)


def _keep_token(snapshot: Snapshot, landed: Landed, after: Landed | None = None) -> None:
    """Write down the token of a version if it has one and the next version, `after`, came out of it.

    Where the next one is gone, it was done when that went: a version that has come since then is a ghost.
    """
    if landed.transaction is None or token_of(landed.transaction) is None:
        return
    after = after or _read_if_there(snapshot, landed.version + 1)
    if after is not None and has_grown(landed, after, partial(read_manifest, snapshot.store, snapshot.committer)):
        keep_token(snapshot.store, landed)


def _read_if_there(snapshot: Snapshot, version: int) -> Landed | None:
    if version < 1:
        return None
    with suppress(VersionNotFound):
        return read_version(snapshot.store, snapshot.committer, version)
    return None


def _held(snapshot: Snapshot, plan: CleanupPlan) -> dict[int, str]:
    held = held_versions(snapshot, plan.options, snapshot.store.now())
    return held | versions_begun_with(snapshot, list_branches(reference_store(snapshot)))


def _is_removed(committer: Committer, version: int) -> bool:
    """Remove a version; return whether it is gone for certain."""
    with suppress(StoreError):
        committer.remove(version)
        return True
    with suppress(StoreError):
        return not committer.exists(version)
    return False


class _Pace:
    """At most so many deletions a second."""

    def __init__(self, per_second: int | None) -> None:
        self.is_set = per_second is not None
        self._interval = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()

    def wait(self) -> None:
        if self._interval:
            time.sleep(max(self._next - time.monotonic(), 0))
            self._next = max(self._next, time.monotonic()) + self._interval


def _delete(store: Store, infos: Sequence[ObjectInfo], pace: _Pace, at_once: int) -> tuple[list[ObjectInfo], int]:
    """Delete files; return those that went, and how many did not and are left for the next clean-up."""

    def delete(info: ObjectInfo) -> bool:
        pace.wait()
        try:
            store.delete(info.path)
        except StoreError:
            return False
        return True

    workers = 1 if pace.is_set else at_once
    done = list(map_ordered(delete, infos, workers, workers))
    return [info for info, went in zip(infos, done, strict=True) if went], done.count(False)


def _stats(plan: CleanupPlan, deleted: Iterable[ObjectInfo], failed: int) -> CleanupStats:
    gone = {info.path for info in deleted}

    def within(infos: Iterable[ObjectInfo]) -> list[ObjectInfo]:
        return [info for info in infos if info.path in gone]

    return CleanupStats(
        bytes_removed=sum(info.size_bytes for info in within((*plan.files, *plan.manifests))),
        old_versions=len(within(plan.manifests)),
        data_files_removed=len(within(plan.data_files)),
        deletion_files_removed=len(within(plan.deletion_files)),
        index_files_removed=len(within(plan.index_files)),
        transaction_files_removed=len(within(plan.transaction_files)),
        failed_deletes=failed,
    )
