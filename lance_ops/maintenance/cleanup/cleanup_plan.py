"""Decide which versions and files may go.

A version stays if it is the newest, among the `retain_versions` newest, younger than `older_than`, tagged or pinned, or
if a branch began with it. A file stays if a version that stays names it, or any version of a branch. What lies in
another line's directory is not looked at. Files that no version names at all belong to a writer that crashed, or to
one that is about to commit: they go only when they are older than `UNVERIFIED_AGE`, by the store's clock. No file of
the table goes while a version is missing that somebody holds.

Files under base paths outside of the root stay, as the reference leaves them: they may be another table's, and a
manifest can name anybody's file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lance_ops.committers import open_root
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
from lance_ops.table import Manifest
from lance_ops.transactions import CommittedVersion, read_manifest

__all__ = [
    "DEFAULT_AGE",
    "UNVERIFIED_AGE",
    "CleanupOptions",
    "CleanupPlan",
    "NamedFiles",
    "add_named_by_others",
    "held_versions",
    "plan_cleanup",
    "versions_begun_with",
]

DEFAULT_AGE = timedelta(weeks=2)


@dataclass(frozen=True)
class CleanupOptions:
    """What may go. With neither `older_than` nor `retain_versions` nor `versions`: versions older than two weeks.

    With both, a version goes only when both allow it. `delete_unverified` removes files that no version names
    whatever their age: safe only while nothing else writes to the table.
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
    """What would go, as of `read_version`: manifests by version, and files by what they are.

    `missing_versions` are held by a tag or a pin, and not there: another clean-up may be about to put them back, and
    until it has, nobody can tell which files they name.
    """

    read_version: int
    options: CleanupOptions
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

    @property
    def files(self) -> tuple[ObjectInfo, ...]:
        """All files but the manifests."""
        return self.data_files + self.deletion_files + self.index_files + self.transaction_files + self.temporary_files


@dataclass
class NamedFiles:
    """Files beneath `root` that manifests name, as paths relative to it; of indices the folders."""

    root: str
    paths: set[str] = field(default_factory=set)
    index_folders: set[str] = field(default_factory=set)

    def add(self, manifest: Manifest, owner: str | None = None) -> None:
        """Add all that a manifest names beneath the root, under whichever base; `owner` is its own table's root."""
        roots = _folders_beneath(self.root, manifest, self.root if owner is None else owner)
        files = {base: f"{root}{DATA_DIR}/" for base, root in roots.items()}
        files |= {b.id: roots[b.id] for b in manifest.base_paths if b.id in roots and not b.is_dataset_root}
        for fragment in manifest.fragments:
            self.paths.update(files[file.base_id] + file.path for file in fragment.files if file.base_id in files)
            deletions = fragment.deletion_file
            if deletions is not None and deletions.base_id in roots:
                self.paths.add(f"{roots[deletions.base_id]}{DELETIONS_DIR}/{deletions.name(fragment.id)}")
            if None in roots:
                self.paths.update(roots[None] + path for path in fragment.sequence_paths())
        self.index_folders.update(
            roots[index.base_id] + index.directory for index in manifest.indices if index.base_id in roots
        )
        if manifest.transaction_file and None in roots:
            self.paths.add(f"{roots[None]}{TRANSACTIONS_DIR}/{manifest.transaction_file}")

    def __contains__(self, path: str) -> bool:
        return (
            path in self.paths or "/".join(path.split("/")[:2]) in self.index_folders or _data_stem(path) in self.paths
        )


def plan_cleanup(snapshot: Snapshot, options: CleanupOptions) -> CleanupPlan:
    """List what may go; `snapshot` must be the newest version.

    Raises `InvalidInput` if an old version is tagged and `error_if_tagged_old_versions` is set, or if `versions` names
    one that must stay.
    """
    now = snapshot.store.now()
    branches = list_branches(reference_store(snapshot))
    notes = [info for directory in (PINS_DIR, REMOVALS_DIR) for info in snapshot.store.list(directory)]
    held, begun = held_versions(snapshot, options, now), versions_begun_with(snapshot, branches)
    kept, known = NamedFiles(snapshot.uri), NamedFiles(snapshot.uri)
    gone: list[int] = []
    stays: list[int] = []
    protected: list[int] = []
    for rank, past in enumerate(history(snapshot)):  # one at a time: manifests of many fragments are large
        old = past.version not in begun and _is_old(past, rank, options, now)
        if old:
            (protected if past.version in held else gone).append(past.version)
        else:
            stays.append(past.version)
        (known if old and past.version not in held else kept).add(past.manifest)
    if protected and options.error_if_tagged_old_versions:
        names = ", ".join(f"{held[version]} (version {version})" for version in sorted(protected))
        raise InvalidInput(
            f"{snapshot.uri}: tagged versions are old enough to go: {names}; delete the tags, or keep these versions "
            "with error_if_tagged_old_versions=False"
        )

    add_named_by_others(kept, snapshot, branches)
    missing = held.keys() - {*gone, *stays, *protected}

    def candidates(directory: str) -> tuple[ObjectInfo, ...]:
        return tuple(
            info
            for info in snapshot.store.list(directory)
            if info.path not in kept and (info.path in known or _is_abandoned(info, options, now)) and not missing
        )

    return CleanupPlan(
        read_version=snapshot.version,
        options=options,
        old_versions=tuple(gone[::-1]),
        kept_versions=(*stays, *protected),
        missing_versions=tuple(sorted(missing)),
        kept_for_tags=tuple(protected[::-1]),
        data_files=candidates(DATA_DIR),
        deletion_files=candidates(DELETIONS_DIR),
        index_files=candidates(INDICES_DIR),
        transaction_files=candidates(TRANSACTIONS_DIR),
        temporary_files=tuple(
            info
            for info in (*_own_temporary(snapshot.store), *_staged_manifests(snapshot.store), *notes)
            if _is_abandoned(info, options, now)
        ),
        manifests=_manifests(snapshot, gone),
    )


def held_versions(snapshot: Snapshot, options: CleanupOptions, now: datetime) -> dict[int, str]:
    """Return the versions that must stay whatever their age, with the name of the tag (or pin) that holds each."""
    pins = (info.path for info in snapshot.store.list(PINS_DIR) if not _is_abandoned(info, options, now))
    held = {version: "a pin" for path in pins if (version := pinned_version(path)) is not None}
    line, tags = branch_of(snapshot), list_tags(reference_store(snapshot))
    return held | {tag.version: name for name, tag in tags.items() if tag.branch == line}


def versions_begun_with(snapshot: Snapshot, branches: Mapping[str, Branch]) -> dict[int, str]:
    """Return the versions of the snapshot's line that branches began with, with the name of one such branch each."""
    line = branch_of(snapshot)
    return {branch.parent_version: name for name, branch in branches.items() if branch.parent_branch == line}


def add_named_by_others(named: NamedFiles, snapshot: Snapshot, branches: Iterable[str]) -> None:
    """Add what the versions of other branches name beneath the root of the snapshot's line."""
    for name in set(branches) - {branch_of(snapshot)}:
        line = open_root(branch_uri(snapshot, name), snapshot.storage_options)
        for version in line.committer.versions():
            with suppress(VersionNotFound):  # a clean-up of the branch took it
                named.add(read_manifest(line.store, line.committer, version), line.store.uri)


def _folders_beneath(root: str, manifest: Manifest, owner: str) -> dict[int | None, str]:
    """Return the folder that each base (None: the owner's root) is beneath a root, of those that are."""
    places: dict[int | None, str] = {None: owner} | {base.id: base.path for base in manifest.base_paths}
    found = {base: path_beneath(root, place) for base, place in places.items()}
    return {base: f"{path}/" if path else "" for base, path in found.items() if path is not None}


def _is_old(past: CommittedVersion, rank: int, options: CleanupOptions, now: datetime) -> bool:
    """Whether a version may go, `rank` newer ones being retained."""
    among_newest = rank < (options.retain_versions or 1)
    if options.versions is not None:
        if among_newest and past.version in options.versions:
            raise InvalidInput(f"version {past.version} must stay: it is among the newest")
        return not among_newest and past.version in options.versions
    age = options.older_than
    if age is None and options.retain_versions is None:
        age = DEFAULT_AGE
    return not among_newest and (age is None or _is_older(past, now - age))


def _is_older(version: CommittedVersion, moment: datetime) -> bool:
    made = version.manifest.timestamp
    return made is not None and made <= moment  # of unknown age: stays


def _is_abandoned(info: ObjectInfo, options: CleanupOptions, now: datetime) -> bool:
    return options.delete_unverified or now - info.modified > UNVERIFIED_AGE


def _data_stem(path: str) -> str:
    """Return the data file that a blob sidecar, `data/{stem}/….blob`, belongs to."""
    parts = path.split("/")
    return f"{DATA_DIR}/{parts[1]}.lance" if len(parts) > 2 and parts[0] == DATA_DIR else path


def _own_temporary(store: Store) -> Iterator[ObjectInfo]:
    """Yield what crashed writers of this line left."""
    return (info for info in store.list_temporary() if belongs_to_this_branch(info.path))


def _staged_manifests(store: Store) -> Iterator[ObjectInfo]:
    """Yield the manifests that no version came of, or whose version has its final name since."""
    return (info for info in store.list(VERSIONS_DIR) if is_staged_manifest(info.path.rpartition("/")[2]))


def _manifests(snapshot: Snapshot, versions: Iterable[int]) -> tuple[ObjectInfo, ...]:
    infos = {info.path: info for info in snapshot.store.list(VERSIONS_DIR)}
    paths = (snapshot.committer.location(version) for version in sorted(versions))
    return tuple(infos[path] for path in paths if path in infos)
