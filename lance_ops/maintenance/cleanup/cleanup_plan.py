"""Plan a clean-up: decide which versions and files may be removed.

A detached version is kept. Any other is kept if it is the newest, among the `retain_versions` newest, younger than
`older_than`, tagged or pinned, or if a branch began with it. Some pins also keep all later versions. A version is as
old as its manifest's object is by the store's clock. The time that its writer put into the manifest does not count: it
can be years away from the true one.

A file is kept if a kept version names it, or any version of another branch, the main branch included. Directories of
other branches are not listed. A file that no version names belongs to a writer that crashed or that is about to commit:
it is removed only when it is older than `UNVERIFIED_AGE` by the store's clock. While a tagged or pinned version is
missing, no file of the table is removed.

The plan is refused if a kept version has a feature that this release cannot write: this release may not know all files
that such a version names. A version to remove may have such a feature. If it names a file in a way that this release
does not know, the file counts as one that no version names.

Files under base paths outside the root are kept, as in the reference: they may belong to another table, and a manifest
can name any file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial
from itertools import chain

from lance_ops.committers import Committer, detached_among
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.file_names import (
    DATA_DIR,
    DELETIONS_DIR,
    INDICES_DIR,
    TRANSACTIONS_DIR,
    VERSIONS_DIR,
    belongs_to_this_branch,
    is_detached,
    is_staged_manifest,
    parse_manifest_name,
)
from lance_ops.core.records import dataclass
from lance_ops.maintenance.batch_ledger import BatchEvent
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.maintenance.cleanup.listed_folders import begin_listings
from lance_ops.maintenance.cleanup.named_files import add_named_by_others
from lance_ops.maintenance.cleanup.shared_work import CleanupTasks
from lance_ops.maintenance.cleanup.version_classes import classify_versions
from lance_ops.refs import (
    PINS_DIR,
    REMOVALS_DIR,
    UNVERIFIED_AGE,
    Branch,
    PinnedVersions,
    Tag,
    branch_of,
    list_branches,
    list_tags,
    reference_store,
)
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo, Store
from lance_ops.transactions import read_manifest

__all__ = [
    "CleanupPlan",
    "HeldVersions",
    "begin_held_versions",
    "plan_cleanup",
]


@dataclass(frozen=True)
class CleanupPlan:
    """The versions, manifests and files to remove, and the batch events, as of `read_version`; files by type.

    `planned_at` is the time of the plan by the store's clock.

    `missing_versions` are tagged or pinned but do not exist: another clean-up may be about to put them back. Until then
    nobody can read which files they name. `kept_for_tags` and `kept_for_pins` are the old ones of `kept_versions`; one
    that is both tagged and pinned is only in `kept_for_tags`.
    """

    read_version: int
    options: CleanupOptions
    planned_at: datetime
    old_versions: tuple[int, ...] = ()
    kept_versions: tuple[int, ...] = ()
    missing_versions: tuple[int, ...] = ()
    kept_for_tags: tuple[int, ...] = ()
    kept_for_pins: tuple[int, ...] = ()
    data_files: tuple[ObjectInfo, ...] = ()
    deletion_files: tuple[ObjectInfo, ...] = ()
    index_files: tuple[ObjectInfo, ...] = ()
    transaction_files: tuple[ObjectInfo, ...] = ()
    temporary_files: tuple[ObjectInfo, ...] = ()
    manifests: tuple[ObjectInfo, ...] = ()
    orphans: tuple[ObjectInfo, ...] = ()
    """Those of the files that no version names, not even one to remove."""
    batch_events: tuple[BatchEvent, ...] = ()

    @property
    def files(self) -> tuple[ObjectInfo, ...]:
        """All files but the manifests."""
        return self.data_files + self.deletion_files + self.index_files + self.transaction_files + self.temporary_files


def plan_cleanup(snapshot: Snapshot, options: CleanupOptions, tasks: CleanupTasks | None = None) -> CleanupPlan:
    """List the versions and files to remove; `snapshot` must be the newest version.

    With `tasks`, many manifests are read by tasks, and so are the listings of folders with many files.

    Raises `InvalidInput` if an old version is tagged and `error_if_tagged_old_versions` is set, or if `versions` names
    one of the newest, and `VersionNotFound` if `versions` names one that does not exist.
    """
    store = snapshot.store
    holds_begun = _begin_holds(snapshot)
    removals_begun = store.begin_call(partial(_listed, store, REMOVALS_DIR))
    now = store.now()  # a file system tells it by a new file
    holds = holds_begun()
    marks = [*holds.pins, *removals_begun()]
    held = holds.versions(snapshot, options, now)
    manifests = _listed(store, VERSIONS_DIR)
    versions = classify_versions(snapshot, options, now, _times_written(manifests), held, held.branch_starts, tasks)
    _check_exist(snapshot, options, versions.numbers)
    tagged = sorted(version for version in versions.old_but_held if version in held.tags)
    if tagged and options.error_if_tagged_old_versions:
        names = ", ".join(f"{held.tags[version]} (version {version})" for version in tagged)
        raise InvalidInput(
            f"{snapshot.uri}: tagged versions are old enough to be removed: {names}; delete the tags, or keep these "
            "versions with error_if_tagged_old_versions=False"
        )
    kept_files, old_files = versions.kept_files, versions.old_files
    add_named_by_others(kept_files, snapshot, holds.branches, tasks)
    manifest_names = (info.path.removeprefix(f"{VERSIONS_DIR}/") for info in manifests)
    detached = detached_among(manifest_names) if snapshot.committer.takes_detached else []
    for version in detached:  # clean-up never removes them
        kept_files.add(read_manifest(store, snapshot.committer, version))
    missing = held.missing_among({*detached, *versions.numbers}, snapshot.version, snapshot.committer)

    def is_removable(info: ObjectInfo) -> bool:
        if missing or info.path in kept_files:
            return False
        return info.path in old_files or _is_abandoned(info, options, now)

    directories = (DATA_DIR, DELETIONS_DIR, INDICES_DIR, TRANSACTIONS_DIR)
    listings = begin_listings(snapshot, directories, is_removable, tasks)
    temporary_begun = store.begin_call(partial(_own_temporary, store))
    unnamed = (*temporary_begun(), *_staged_manifests(snapshot, manifests), *marks)
    temporary = tuple(info for info in unnamed if _is_abandoned(info, options, now))
    data, deletions, indices, transactions = (listed() for listed in listings)
    return CleanupPlan(
        read_version=snapshot.version,
        options=options,
        planned_at=now,
        old_versions=tuple(versions.old[::-1]),
        kept_versions=(*versions.recent, *versions.old_but_held),
        missing_versions=tuple(sorted(missing)),
        kept_for_tags=tuple(tagged),
        kept_for_pins=tuple(sorted(set(versions.old_but_held).difference(tagged))),
        data_files=data,
        deletion_files=deletions,
        index_files=indices,
        transaction_files=transactions,
        temporary_files=temporary,
        manifests=_manifests(snapshot, manifests, versions.old),
        orphans=tuple(
            info for info in chain(data, deletions, indices, transactions, temporary) if info.path not in old_files
        ),
        batch_events=tuple(versions.batch_events),
    )


def _check_exist(snapshot: Snapshot, options: CleanupOptions, retained: AbstractSet[int]) -> None:
    """Raise `VersionNotFound` unless the versions to remove exist; after a preview, somebody may have removed them."""
    absent = [] if options.within is not None else sorted(set(options.versions or ()) - retained)
    if absent:
        raise VersionNotFound(
            f"{snapshot.uri} has no version {', '.join(map(str, absent))} to remove: it has {min(retained)} to "
            f"{max(retained)}"
        )


@dataclass(frozen=True)
class HeldVersions:
    """Versions that clean-up keeps at any age: those that `tags` name, the `pinned`, and the `branch_starts`.

    If the version that a branch began with no longer exists, it is not missing: the branch does not need it.
    """

    tags: Mapping[int, str]
    pinned: PinnedVersions
    branch_starts: frozenset[int] = frozenset()

    def __contains__(self, version: object) -> bool:
        return version in self.tags or version in self.pinned or version in self.branch_starts

    def missing_among(self, found: AbstractSet[int], newest: int, committer: Committer) -> set[int]:
        """Return the versions that a tag or a pin names and that do not exist.

        `found` are versions that exist, among them all up to `newest`. A version that was made later is not missing.
        """
        absent = {*self.tags, *self.pinned.named} - found
        return {each for each in absent if each <= newest or is_detached(each) or not committer.exists(each)}


@dataclass(frozen=True)
class _Holds:
    """The pins, tags and branches of a table, which keep versions at any age."""

    pins: Sequence[ObjectInfo]
    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]

    def versions(self, snapshot: Snapshot, options: CleanupOptions, now: datetime) -> HeldVersions:
        """Return the versions of the snapshot's branch that are held.

        Pins that were abandoned before `now`, a time by the store's clock, are left out.
        """
        pinned = PinnedVersions.by(info.path for info in self.pins if not _is_abandoned(info, options, now))
        ours = branch_of(snapshot)
        tags = {tag.version: name for name, tag in self.tags.items() if tag.branch == ours}
        starts = (branch.parent_version for branch in self.branches.values() if branch.parent_branch == ours)
        return HeldVersions(tags, pinned, frozenset(starts if options.keep_branch_starts else ()))


def begin_held_versions(snapshot: Snapshot, options: CleanupOptions) -> Callable[[datetime], HeldVersions]:
    """Begin to read tags, pins and branches; return a function from the store's time to the versions that they hold."""
    holds_begun = _begin_holds(snapshot)
    return lambda now: holds_begun().versions(snapshot, options, now)


def _begin_holds(snapshot: Snapshot) -> Callable[[], _Holds]:
    pins_begun = snapshot.store.begin_call(partial(_listed, snapshot.store, PINS_DIR))
    tags_begun = snapshot.store.begin_call(partial(list_tags, reference_store(snapshot)))
    branches_begun = snapshot.store.begin_call(partial(list_branches, reference_store(snapshot)))
    return lambda: _Holds(pins_begun(), tags_begun(), branches_begun())


def _listed(store: Store, directory: str) -> list[ObjectInfo]:
    return list(store.list(directory))


def _times_written(manifests: Iterable[ObjectInfo]) -> dict[int, datetime]:
    """Return when the manifest of each version was written, by the store's clock."""
    parsed = ((parse_manifest_name(info.path.removeprefix(f"{VERSIONS_DIR}/")), info.modified) for info in manifests)
    return {found[0]: modified for found, modified in parsed if found is not None}


def _is_abandoned(info: ObjectInfo, options: CleanupOptions, now: datetime) -> bool:
    """Return whether a file that no version names may go; within bounds, as at the time of the earlier plan."""
    moment = now if options.within is None else options.within.planned_at
    if options.delete_unverified:
        return options.within is None or info.modified <= moment
    return moment - info.modified > UNVERIFIED_AGE


def _own_temporary(store: Store) -> list[ObjectInfo]:
    """Return the temporary files that crashed writers of this branch left."""
    return [info for info in store.list_temporary() if belongs_to_this_branch(info.path)]


def _staged_manifests(snapshot: Snapshot, listed: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    """Return staged manifests that are no version: their commit failed, or their version has its final name by now."""
    staged = [info for info in listed if is_staged_manifest(info.path.rpartition("/")[2])]
    version = snapshot.committer.staged_manifest() if staged else None
    return [info for info in staged if info.path != version]


def _manifests(snapshot: Snapshot, listed: Iterable[ObjectInfo], versions: Iterable[int]) -> tuple[ObjectInfo, ...]:
    infos = {info.path: info for info in listed}
    paths = (snapshot.committer.location(version) for version in sorted(versions))
    return tuple(infos[path] for path in paths if path in infos)
