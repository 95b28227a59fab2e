"""Collect the files that manifests name, in the process that plans a clean-up or in tasks for some versions each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import NamedTuple, TypeAlias

from lance_ops.committers import Committer, DatasetRoot, list_detached, open_root
from lance_ops.core.errors import VersionNotFound
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR, MAIN_BRANCH, TRANSACTIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup.shared_work import CleanupTasks, cut
from lance_ops.refs import branch_of, branch_uri
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store, path_beneath
from lance_ops.table import BasePath, FragmentList, Manifest, check_writable
from lance_ops.transactions import read_manifest

__all__ = ["NamedFiles", "add_named_by_others", "detached_versions"]

_Folders: TypeAlias = dict[int | None, str]
"""Folders beneath a root by the id of the base that they are in; None is the root of the manifest's own dataset."""


class _Added(NamedTuple):
    """The manifest that was added last: its owner and base paths, the folders that follow from them, its fragments."""

    bases: tuple[str | None, tuple[BasePath, ...]]
    roots: _Folders
    files: _Folders
    deletions: _Folders
    fragments: FragmentList


@dataclass
class NamedFiles:
    """Paths of files beneath `root` that manifests name, relative to it; for indices, the paths of their folders."""

    root: str
    paths: set[str] = field(default_factory=set)
    index_folders: set[str] = field(default_factory=set)
    _last_added: _Added | None = None

    def add(self, manifest: Manifest, owner: str | None = None, *, is_kept: bool = True) -> None:
        """Add all files beneath the root that a manifest names, under any base.

        `owner` is the root of the branch that the manifest is of, by default this root.

        Raises `UnsupportedFeature` for a manifest that this release may not write to, because it may name files in ways
        that this release does not know. Pass `is_kept=False` for a version that goes: a file that it names in such a
        way is then one that no version names.

        Most versions share most of their fragments with the version that was added before: only the others are read.
        """
        if is_kept:
            check_writable(manifest, f"{owner or self.root} at version {manifest.version}")
        last = self._last_added
        if last is None or last.bases != (owner, manifest.base_paths):
            last = self._added(manifest, owner, FragmentList())
        if not last.roots:  # the manifest names nothing beneath the root, so its fragments need no decoding
            self._last_added = last
            return
        named = manifest.fragments.files_since(last.fragments)
        for folders, names in (
            (last.files, named.data),
            (last.deletions, named.deletions),
            (last.roots, named.sequences),
        ):
            self.paths.update([folders[base] + name for base, name in names if base in folders])
        self._last_added = last._replace(fragments=manifest.fragments)
        roots = last.roots
        # A segment may be in another root than in that of its base; see `lance_ops.snapshot.index_location`.
        self.index_folders.update(root + index.directory for index in manifest.indices for root in roots.values())
        if manifest.transaction_file and None in roots:
            self.paths.add(f"{roots[None]}{TRANSACTIONS_DIR}/{manifest.transaction_file}")

    def leave_out(self, manifest: Manifest) -> None:
        """Let the next manifest add no file of the fragments that it shares with this one."""
        self._last_added = self._added(manifest, None, manifest.fragments)

    def _added(self, manifest: Manifest, owner: str | None, fragments: FragmentList) -> _Added:
        """Return what is kept of a manifest for the next one, with these of its fragments."""
        roots = _folders_beneath(self.root, manifest, owner or self.root)
        files = {base: f"{folder}{DATA_DIR}/" for base, folder in roots.items()}
        files |= {b.id: roots[b.id] for b in manifest.base_paths if b.id in roots and not b.is_dataset_root}
        deletions = {base: f"{folder}{DELETIONS_DIR}/" for base, folder in roots.items()}
        return _Added((owner, manifest.base_paths), roots, files, deletions, fragments)

    def update(self, other: NamedFiles) -> None:
        """Add the files that another collection beneath the same root has."""
        self.paths |= other.paths
        self.index_folders |= other.index_folders

    def __reduce__(self) -> tuple[object, tuple[str, set[str], set[str]]]:
        return NamedFiles, (self.root, self.paths, self.index_folders)

    def __contains__(self, path: str) -> bool:
        """Return whether a manifest names a file, or the data file or the index that it is a part of.

        A blob sidecar, `{folder}/{stem}/….blob`, belongs to the data file `{folder}/{stem}.lance` in any folder.
        """
        if path in self.paths:
            return True
        above, slash, _ = path.rpartition("/")
        while slash:
            if above in self.index_folders or f"{above}.lance" in self.paths:
                return True
            above, slash, _ = above.rpartition("/")
        return False


def add_named_by_others(
    named: NamedFiles, snapshot: Snapshot, branches: Iterable[str], tasks: CleanupTasks | None = None
) -> None:
    """Add the files beneath the root of the snapshot's branch that versions of other branches name, main included."""
    for name in {None, *branches} - {branch_of(snapshot)}:
        branch = open_root(branch_uri(snapshot, name), snapshot.storage_options)
        versions = [*branch.committer.versions(), *detached_versions(branch.store, branch.committer)]
        if tasks is None or len(versions) <= tasks.versions_per_task:
            _add_versions(named, branch, versions)
            continue
        names = BranchNames(snapshot.uri, branch.store.uri, dict(snapshot.storage_options))
        job = Job.on(f"read branch {name or MAIN_BRANCH} to clean up", snapshot.uri, snapshot.version)
        for found in tasks.runner.map(names, cut(versions, tasks.versions_per_task), job):
            named.update(found)


@dataclass(frozen=True)
class BranchNames:
    """Collects the files beneath `root` that some versions of the branch at `branch` name, in a task."""

    root: str
    branch: str
    storage_options: Mapping[str, str] = field(repr=False)

    def __call__(self, versions: Sequence[int]) -> NamedFiles:
        """Read the manifests of these versions."""
        named = NamedFiles(self.root)
        _add_versions(named, open_root(self.branch, self.storage_options), versions)
        return named


def detached_versions(store: Store, committer: Committer) -> list[int]:
    """Return the detached versions, ascending."""
    return list_detached(store) if committer.takes_detached else []


def _add_versions(named: NamedFiles, branch: DatasetRoot, versions: Iterable[int]) -> None:
    for version in versions:
        with suppress(VersionNotFound):  # a clean-up of that branch removed it
            named.add(read_manifest(branch.store, branch.committer, version), branch.store.uri)


def _folders_beneath(root: str, manifest: Manifest, owner: str) -> _Folders:
    """Return the folders of the bases (None: the owner's root) that are beneath a root, relative to it.

    The process that wrote to another branch may have spelled the root in another way: by a symbolic link, by another
    mount, or relative to its own folder. So a base that is a dataset's root and is not found beneath this root counts
    as this root. If it is another dataset's root, a file here is kept if one there has its name; names are unique.
    """
    places: dict[int | None, str] = {None: owner} | {base.id: base.path for base in manifest.base_paths}
    found = {base: path_beneath(root, place) for base, place in places.items()}
    if owner != root:
        found |= {base.id: found[base.id] or "" for base in manifest.base_paths if base.is_dataset_root}
    return {base: f"{path}/" if path else "" for base, path in found.items() if path is not None}
