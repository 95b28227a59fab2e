"""Begin a dataset from one version of another: with copies of its files (deep), or with their names only (shallow).

A shallow clone reads the source's files through a base path and writes new files beneath its own root. The source does
not know of its clones: a tag on the source keeps clean-up from removing the version. A pin keeps it while the clone is
made, if the source's store can be written to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from lance_ops.committers import DatasetRoot, open_root, with_allowed_bases
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR, data_file_name, is_detached, new_deletion_file_id
from lance_ops.refs.branch_locations import branch_of, branch_uri
from lance_ops.refs.copied_files import CopiedFile, CopyTask, FileKind, copy_file
from lance_ops.refs.version_pins import pinned_where_writable
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import (
    DataFile,
    ExternalFile,
    Fragment,
    FragmentList,
    IndexMetadata,
    Manifest,
    RowSequence,
    check_writable,
)
from lance_ops.transactions import Clone, PendingFiles, Transaction, commit_clone

__all__ = ["commit_first_version", "commit_shallow_clone", "deep_clone", "shallow_clone"]

_COPIES_AT_ONCE = 8


def shallow_clone(source: Snapshot, target_uri: str, storage_options: Mapping[str, str] | None = None) -> Snapshot:
    """Create a dataset that reads the source's files; raise `DatasetAlreadyExists` if the target holds one.

    `storage_options` must open both the target and the source; the default is the source's options.
    """
    root = open_root(target_uri, source.storage_options if storage_options is None else storage_options)
    with pinned_where_writable(source):
        return commit_first_version(source, root, Transaction(source.version, _clone_of(source, is_shallow=True)))


def deep_clone(
    source: Snapshot,
    target_uri: str,
    storage_options: Mapping[str, str] | None = None,
    runner: Runner | None = None,
) -> Snapshot:
    """Copy every file of the version, under whichever base path, and create a dataset of the copies.

    Tasks of the runner copy the files, each verified by its checksums and by its size.

    Raises `DatasetAlreadyExists` if the target holds one, and `VersionNotFound` if clean-up removed the version. After
    a definite failure the copies are deleted.
    """
    _check_not_detached(source)
    root = open_root(target_uri, source.storage_options if storage_options is None else storage_options)
    if root.committer.latest() is not None:
        raise DatasetAlreadyExists(f"{root.store.uri} holds a dataset already")
    with pinned_where_writable(source):
        return _copy(source, root, runner)


def commit_shallow_clone(transaction: Transaction, root: DatasetRoot) -> Snapshot:
    """Commit a `Clone` transaction that another process made; the target's options must open the source too.

    Raises `InvalidInput` for a deep clone and for a branch, `DatasetAlreadyExists` if the target holds a dataset, and
    as `Snapshot.open` does for the source.
    """
    clone = transaction.operation
    assert isinstance(clone, Clone)
    if not clone.is_shallow:
        raise InvalidInput(f"a deep clone of {clone.ref_path} copies files: use deep_clone")
    if clone.branch_name is not None:
        raise InvalidInput(f"this clone begins branch {clone.branch_name!r}: use create_branch")
    source = Snapshot.open(clone.ref_path, storage_options=root.storage_options)
    if clone.ref_name != branch_of(source):
        source = Snapshot.open(branch_uri(source, clone.ref_name), storage_options=root.storage_options)
    source = source.at(clone.ref_version)
    complete = replace(transaction, read_version=source.version, operation=_clone_of(source, is_shallow=True))
    with pinned_where_writable(source):
        return commit_first_version(source, root, complete)


def commit_first_version(source: Snapshot, root: DatasetRoot, transaction: Transaction) -> Snapshot:
    """Commit the first version of a shallow clone or a branch; see `commit_clone` for the errors."""
    _check_not_detached(source)
    manifest = commit_clone(root.committer, root.store, transaction, _self_contained(source))
    # The caller has named the source. Base paths of the source's own manifest are not trusted for that.
    options = with_allowed_bases(root.store.uri, root.storage_options, [source.uri]) or {}
    return Snapshot(root.store, root.committer, manifest, options, verify_checksums=source.verify_checksums)


def _check_not_detached(source: Snapshot) -> None:
    """Raise `UnsupportedFeature` for a detached version: the first version of the copy would have its number."""
    if is_detached(source.version):
        feature = f"a clone or branch of detached version {source.version} (restore it first)"
        raise UnsupportedFeature(feature, source.uri)


def _clone_of(source: Snapshot, *, is_shallow: bool) -> Clone:
    return Clone(is_shallow, source.version, source.uri, source.manifest.branch)


def _self_contained(source: Snapshot) -> Manifest:
    """Return the manifest with true row counts and inline row sequences: no base path leads to sequence files.

    Raises `UnsupportedFeature` for a table that this release may not write to: the copy would lose that flag.
    """
    check_writable(source.manifest, source.manifest_uri)
    has_sequences = source.manifest.uses_stable_row_ids
    if source.row_counts_are_known and not has_sequences:
        return source.manifest

    def inline(sequence: RowSequence) -> RowSequence:
        if not isinstance(sequence, ExternalFile):
            return sequence
        stop = sequence.offset + sequence.size
        data: bytes = source.store.get_range(sequence.path, sequence.offset, stop).to_pybytes()
        return data

    def with_inline_sequences(fragment: Fragment) -> Fragment:
        if not any(fragment.sequence_paths()):
            return fragment
        return fragment.with_sequences(
            row_ids=inline(fragment.row_ids),
            last_updated_at_versions=inline(fragment.last_updated_at_versions),
            created_at_versions=inline(fragment.created_at_versions),
        )

    return replace(source.manifest, fragments=FragmentList(map(with_inline_sequences, source.fragments)))


def _copy(source: Snapshot, root: DatasetRoot, runner: Runner | None) -> Snapshot:
    copies, source_manifest = _Copies(source), _self_contained(source)
    manifest = replace(
        source_manifest,
        fragments=FragmentList(map(copies.fragment, source_manifest.fragments)),
        indices=tuple(map(copies.index, source.manifest.indices)),
    )

    reference, options = SnapshotReference.of(source), dict(root.storage_options)
    tasks = [CopyTask(reference, file, root.store.uri, path, options) for path, file in copies.sources.items()]
    job = Job.on("clone", source.uri, source.version, tuple(task.file.size_bytes for task in tasks), unit="bytes")
    pending = PendingFiles.at(root.store, copies.sources)
    with pending.abandoned_on_failure():
        (runner or InThreads(_COPIES_AT_ONCE)).map(copy_file, tasks, job)
    with pending.abandoned_unless_committed():
        made = commit_clone(
            root.committer, root.store, Transaction(source.version, _clone_of(source, is_shallow=False)), manifest
        )
    return Snapshot(root.store, root.committer, made, root.storage_options, verify_checksums=source.verify_checksums)


class _Copies:
    """The files to copy and their new names, which differ from those of any concurrent copy."""

    def __init__(self, source: Snapshot) -> None:
        self._locations = source.file_locations
        self._index_root = source.index_root
        self._has_blobs = source.schema.holds_blobs_v2
        self.sources: dict[str, CopiedFile] = {}
        """The file to copy, by the path of its copy in the new root."""

    def fragment(self, fragment: Fragment) -> Fragment:
        """Return the fragment with the names of its copied files."""
        files = tuple(map(self._data_file, fragment.files))
        if fragment.deletion_file is None:
            return replace(fragment, files=files)
        deletions = replace(fragment.deletion_file, id=new_deletion_file_id(), base_id=None)
        location = self._locations.deletion_file(fragment)
        file = CopiedFile(FileKind.DELETIONS, location.path, fragment_id=fragment.id)
        self.sources[f"{DELETIONS_DIR}/{deletions.name(fragment.id)}"] = file
        return replace(fragment, files=files, deletion_file=deletions)

    def index(self, index: IndexMetadata) -> IndexMetadata:
        """Return the index segment with the names of its copied files."""
        copy = replace(index, uuid=uuid4(), base_id=None)
        root = self._index_root(index)
        for info in root.list(index.directory):
            path = copy.directory + info.path.removeprefix(index.directory)
            self.sources[path] = CopiedFile(FileKind.INDEX, info.path, index_id=index.uuid, size_bytes=info.size_bytes)
        return copy

    def _data_file(self, file: DataFile) -> DataFile:
        copy = replace(file, path=data_file_name(), base_id=None)
        location = self._locations.data_file(file.base_id, file.path)
        self.sources[f"{DATA_DIR}/{copy.path}"] = CopiedFile(
            FileKind.DATA, file.path, file.base_id, size_bytes=file.file_size_bytes
        )
        if self._has_blobs:
            folder = location.path.removesuffix(".lance")
            for info in location.store.list(folder):
                path = f"{DATA_DIR}/{copy.path.removesuffix('.lance')}{info.path.removeprefix(folder)}"
                name = f"{file.path.removesuffix('.lance')}{info.path.removeprefix(folder)}"
                self.sources[path] = CopiedFile(FileKind.DATA, name, file.base_id, size_bytes=info.size_bytes)
        return copy
