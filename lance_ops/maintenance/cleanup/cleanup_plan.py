"""Plan a clean-up: decide which versions and files may be removed.

A detached version is kept. Any other is kept if it is the newest, among the `retain_versions` newest, younger than
`older_than`, tagged or pinned, or if a branch began with it. A file is kept if a kept version names it, or any version
of another branch. Directories of other branches are not listed. A file that no version names belongs to a writer that
crashed or that is about to commit: it is removed only when it is older than `UNVERIFIED_AGE` by the store's clock.
While a tagged or pinned version is missing, no file of the table is removed.

Files under base paths outside the root are kept, as in the reference: they may belong to another table, and a manifest
can name any file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias

from lance_ops.committers import Committer, list_detached, open_root
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.file_names import (
    DATA_DIR,
    DELETIONS_DIR,
    INDICES_DIR,
    TRANSACTIONS_DIR,
    VERSIONS_DIR,
    belongs_to_this_branch,
    is_staged_manifest,
)
from lance_ops.maintenance.batch_ledger import BatchEvent, batch_event
from lance_ops.refs import (
    PINS_DIR,
    REMOVALS_DIR,
    UNVERIFIED_AGE,
    Branch,
    branch_of,
    branch_uri,
    list_branches,
    list_tags,
    pinned_version,
    reference_store,
)
from lance_ops.snapshot import Snapshot, history
from lance_ops.store import ObjectInfo, Store, path_beneath
from lance_ops.table import FragmentList, Manifest
from lance_ops.transactions import CommittedVersion, read_manifest

__all__ = [
    "DEFAULT_AGE",
    "UNVERIFIED_AGE",
    "CleanupOptions",
    "CleanupPlan",
    "NamedFiles",
    "add_named_by_others",
    "branch_start_versions",
    "detached_versions",
    "plan_cleanup",
    "tagged_or_pinned_versions",
]

DEFAULT_AGE = timedelta(weeks=2)

_Folders: TypeAlias = dict[int | None, str]
"""Folders beneath a root by the id of the base that they are in; None is the root of the manifest's own dataset."""


@dataclass(frozen=True)
class CleanupOptions:
    """Which versions to remove; by default, versions older than two weeks.

    With both `older_than` and `retain_versions`, a version is removed only if both allow it. `versions` names the
    versions instead. `delete_unverified` removes files that no version names at any age: this is safe only while no
    other process writes to the table.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True
    delete_rate_limit: int | None = None
    versions: tuple[int, ...] | None = None
    delete_concurrency: int | None = None

    def __post_init__(self) -> None:
        if self.retain_versions is not None and self.retain_versions < 1:
            raise InvalidInput(f"retain_versions must be at least 1, not {self.retain_versions}")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise InvalidInput("older_than must not be negative")
        if self.delete_rate_limit is not None and self.delete_rate_limit < 1:
            raise InvalidInput(f"delete_rate_limit must be at least 1 a second, not {self.delete_rate_limit}")
        if self.delete_concurrency is not None and self.delete_concurrency < 1:
            raise InvalidInput(f"delete_concurrency must be at least 1, not {self.delete_concurrency}")


@dataclass(frozen=True)
class CleanupPlan:
    """The versions, manifests and files to remove, and the batch events, as of `read_version`; files by type.

    `planned_at` is the time of the plan by the store's clock.

    `missing_versions` are tagged or pinned but do not exist: another clean-up may be about to put them back. Until then
    nobody can read which files they name.
    """

    read_version: int
    options: CleanupOptions
    planned_at: datetime
    old_versions: tuple[int, ...] = ()
    kept_versions: tuple[int, ...] = ()
    missing_versions: tuple[int, ...] = ()
    kept_for_tags: tuple[int, ...] = ()
    data_files: tuple[ObjectInfo, ...] = ()
    deletion_files: tuple[ObjectInfo, ...] = ()
    index_files: tuple[ObjectInfo, ...] = ()
    transaction_files: tuple[ObjectInfo, ...] = ()
    temporary_files: tuple[ObjectInfo, ...] = ()
    manifests: tuple[ObjectInfo, ...] = ()
    batch_events: tuple[BatchEvent, ...] = ()

    @property
    def files(self) -> tuple[ObjectInfo, ...]:
        """All files but the manifests."""
        return self.data_files + self.deletion_files + self.index_files + self.transaction_files + self.temporary_files


@dataclass
class NamedFiles:
    """Paths of files beneath `root` that manifests name, relative to it; for indices, the paths of their folders."""

    root: str
    paths: set[str] = field(default_factory=set)
    index_folders: set[str] = field(default_factory=set)
    _last_added: tuple[_Folders, _Folders, FragmentList] | None = None

    def add(self, manifest: Manifest, owner: str | None = None) -> None:
        """Add all files beneath the root that a manifest names, under any base; `owner` is the manifest's own root.

        Most versions share most of their fragments with the version that was added before: only the others are read.
        """
        roots = _folders_beneath(self.root, manifest, self.root if owner is None else owner)
        files = {base: f"{root}{DATA_DIR}/" for base, root in roots.items()}
        files |= {b.id: roots[b.id] for b in manifest.base_paths if b.id in roots and not b.is_dataset_root}
        before = FragmentList()
        if self._last_added is not None and self._last_added[:2] == (roots, files):
            before = self._last_added[2]
        named = manifest.fragments.files_since(before)
        deletions = {base: f"{root}{DELETIONS_DIR}/" for base, root in roots.items()}
        for folders, names in ((files, named.data), (deletions, named.deletions), (roots, named.sequences)):
            self.paths.update(folders[base] + name for base, name in names if base in folders)
        self._last_added = roots, files, manifest.fragments
        # A segment may be in another root than in that of its base; see `lance_ops.snapshot.index_location`.
        self.index_folders.update(root + index.directory for index in manifest.indices for root in roots.values())
        if manifest.transaction_file and None in roots:
            self.paths.add(f"{roots[None]}{TRANSACTIONS_DIR}/{manifest.transaction_file}")

    def __contains__(self, path: str) -> bool:
        if path in self.paths:
            return True
        directory, _, below = path.partition("/")
        name, is_in_folder, _ = below.partition("/")
        if f"{directory}/{name}" in self.index_folders:
            return True
        # A blob sidecar, `data/{stem}/….blob`, belongs to the data file of that stem.
        return bool(is_in_folder) and directory == DATA_DIR and f"{DATA_DIR}/{name}.lance" in self.paths


def plan_cleanup(snapshot: Snapshot, options: CleanupOptions) -> CleanupPlan:
    """List the versions and files to remove; `snapshot` must be the newest version.

    Raises `InvalidInput` if an old version is tagged and `error_if_tagged_old_versions` is set, or if `versions` names
    one of the newest.
    """
    store = snapshot.store
    marks_begun = [store.begin_call(partial(_listed, store, directory)) for directory in (PINS_DIR, REMOVALS_DIR)]
    branches_begun = store.begin_call(partial(list_branches, reference_store(snapshot)))
    tagged_or_pinned, now = tagged_or_pinned_versions(snapshot, options)
    branches, marks = branches_begun(), [info for listed in marks_begun for info in listed()]
    detached_begun = store.begin_call(partial(detached_versions, store, snapshot.committer))
    versions = _classify(snapshot, options, now, tagged_or_pinned, branch_start_versions(snapshot, branches))
    if versions.old_but_tagged and options.error_if_tagged_old_versions:
        names = ", ".join(
            f"{tagged_or_pinned[version]} (version {version})" for version in sorted(versions.old_but_tagged)
        )
        raise InvalidInput(
            f"{snapshot.uri}: tagged versions are old enough to be removed: {names}; delete the tags, or keep these "
            "versions with error_if_tagged_old_versions=False"
        )
    kept_files, old_files = versions.kept_files, versions.old_files
    add_named_by_others(kept_files, snapshot, branches)
    detached = detached_begun()
    for version in detached:  # clean-up never removes them
        kept_files.add(read_manifest(store, snapshot.committer, version))
    missing = tagged_or_pinned.keys() - {*detached, *versions.old, *versions.recent, *versions.old_but_tagged}

    def is_removable(info: ObjectInfo) -> bool:
        is_unneeded = info.path in old_files or _is_abandoned(info, options, now)
        return info.path not in kept_files and is_unneeded and not missing

    def removable(directory: str) -> tuple[ObjectInfo, ...]:
        return tuple(filter(is_removable, store.list(directory)))

    directories = (DATA_DIR, DELETIONS_DIR, INDICES_DIR, TRANSACTIONS_DIR)
    data, deletions, indices, transactions = [store.begin_call(partial(removable, each)) for each in directories]
    temporary_begun = store.begin_call(partial(_own_temporary, store))
    manifests = _listed(store, VERSIONS_DIR)
    unnamed = (*temporary_begun(), *_staged_manifests(manifests), *marks)
    return CleanupPlan(
        read_version=snapshot.version,
        options=options,
        planned_at=now,
        old_versions=tuple(versions.old[::-1]),
        kept_versions=(*versions.recent, *versions.old_but_tagged),
        missing_versions=tuple(sorted(missing)),
        kept_for_tags=tuple(versions.old_but_tagged[::-1]),
        data_files=data(),
        deletion_files=deletions(),
        index_files=indices(),
        transaction_files=transactions(),
        temporary_files=tuple(info for info in unnamed if _is_abandoned(info, options, now)),
        manifests=_manifests(snapshot, manifests, versions.old),
        batch_events=tuple(versions.batch_events),
    )


@dataclass(frozen=True)
class _Classified:
    """The retained versions, newest first, by what clean-up does with them, and what they name and recorded."""

    old: list[int]
    old_but_tagged: list[int]
    recent: list[int]
    old_files: NamedFiles
    kept_files: NamedFiles
    batch_events: list[BatchEvent]


def _classify(
    snapshot: Snapshot,
    options: CleanupOptions,
    now: datetime,
    tagged_or_pinned: Mapping[int, str],
    branch_starts: Mapping[int, str],
) -> _Classified:
    """Classify the versions up to the snapshot's; one that a branch began with (`branch_starts`) counts as recent."""
    found = _Classified([], [], [], NamedFiles(snapshot.uri), NamedFiles(snapshot.uri), [])
    after: CommittedVersion | None = None
    for rank, committed in enumerate(history(snapshot, to_the_end=True)):  # few at a time: they can be large
        event = batch_event(snapshot, committed, after)
        if event is not None:
            found.batch_events.append(event)
        after, past = committed, committed.manifest
        if past.version in branch_starts or not _is_old(past, rank, options, now):
            found.recent.append(past.version)
            found.kept_files.add(past)
        elif past.version in tagged_or_pinned:
            found.old_but_tagged.append(past.version)
            found.kept_files.add(past)
        else:
            found.old.append(past.version)
            found.old_files.add(past)
    return found


def tagged_or_pinned_versions(
    snapshot: Snapshot, options: CleanupOptions, now: datetime | None = None
) -> tuple[dict[int, str], datetime]:
    """Return the tagged and pinned versions, which are kept at any age, with the name of a tag (or pin) of each.

    The time by the store's clock comes with them: pins that were abandoned before it are left out. A store is asked for
    its time unless `now` tells it; a file system tells it by a new file.
    """
    store = snapshot.store
    pins_begun = store.begin_call(partial(_listed, store, PINS_DIR))
    tags_begun = store.begin_call(partial(list_tags, reference_store(snapshot)))
    now = store.now() if now is None else now
    pins = (info.path for info in pins_begun() if not _is_abandoned(info, options, now))
    tagged_or_pinned = {version: "a pin" for path in pins if (version := pinned_version(path)) is not None}
    branch, tags = branch_of(snapshot), tags_begun()
    return tagged_or_pinned | {tag.version: name for name, tag in tags.items() if tag.branch == branch}, now


def _listed(store: Store, directory: str) -> list[ObjectInfo]:
    return list(store.list(directory))


def branch_start_versions(snapshot: Snapshot, branches: Mapping[str, Branch]) -> dict[int, str]:
    """Return the versions of the snapshot's branch that other branches began with, with the name of one of them."""
    parent = branch_of(snapshot)
    return {branch.parent_version: name for name, branch in branches.items() if branch.parent_branch == parent}


def add_named_by_others(named: NamedFiles, snapshot: Snapshot, branches: Iterable[str]) -> None:
    """Add the files beneath the root of the snapshot's branch that versions of other branches name."""
    for name in set(branches) - {branch_of(snapshot)}:
        branch = open_root(branch_uri(snapshot, name), snapshot.storage_options)
        for version in (*branch.committer.versions(), *detached_versions(branch.store, branch.committer)):
            with suppress(VersionNotFound):  # a clean-up of that branch removed it
                named.add(read_manifest(branch.store, branch.committer, version), branch.store.uri)


def detached_versions(store: Store, committer: Committer) -> list[int]:
    """Return the detached versions, ascending."""
    return list_detached(store) if committer.takes_detached else []


def _folders_beneath(root: str, manifest: Manifest, owner: str) -> _Folders:
    """Return the folders of the bases (None: the owner's root) that are beneath a root, relative to it."""
    places: dict[int | None, str] = {None: owner} | {base.id: base.path for base in manifest.base_paths}
    found = {base: path_beneath(root, place) for base, place in places.items()}
    return {base: f"{path}/" if path else "" for base, path in found.items() if path is not None}


def _is_old(past: Manifest, rank: int, options: CleanupOptions, now: datetime) -> bool:
    """Return whether the options allow to remove a version that has `rank` newer versions."""
    among_newest = rank < (options.retain_versions or 1)
    if options.versions is not None:
        if among_newest and past.version in options.versions:
            raise InvalidInput(f"version {past.version} cannot be removed: it is among the newest")
        return not among_newest and past.version in options.versions
    age = options.older_than
    if age is None and options.retain_versions is None:
        age = DEFAULT_AGE
    return not among_newest and (age is None or _is_older(past, now - age))


def _is_older(past: Manifest, moment: datetime) -> bool:
    made = past.timestamp
    return made is not None and made <= moment  # a version of unknown age is kept


def _is_abandoned(info: ObjectInfo, options: CleanupOptions, now: datetime) -> bool:
    return options.delete_unverified or now - info.modified > UNVERIFIED_AGE


def _own_temporary(store: Store) -> list[ObjectInfo]:
    """Return the temporary files that crashed writers of this branch left."""
    return [info for info in store.list_temporary() if belongs_to_this_branch(info.path)]


def _staged_manifests(listed: Iterable[ObjectInfo]) -> Iterator[ObjectInfo]:
    """Yield staged manifests: their commit failed, or their version has its final name by now."""
    return (info for info in listed if is_staged_manifest(info.path.rpartition("/")[2]))


def _manifests(snapshot: Snapshot, listed: Iterable[ObjectInfo], versions: Iterable[int]) -> tuple[ObjectInfo, ...]:
    infos = {info.path: info for info in listed}
    paths = (snapshot.committer.location(version) for version in sorted(versions))
    return tuple(infos[path] for path in paths if path in infos)
