"""Tell a snapshot's branch, the URI of another branch and the store of tags and branches; open a branch's version.

A branch is a dataset of its own that reads its parent's files through a base path. The files of tags and branches are
all in the root of the main branch.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.committers import open_base
from lance_ops.core.errors import DatasetNotFound, ReferenceNotFound, UnsafePath
from lance_ops.core.file_names import MAIN_BRANCH, TREE_DIR, branch_directory
from lance_ops.refs.branch_file import branch_path, read_branch
from lance_ops.refs.tags import read_tag
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store

__all__ = [
    "branch_of",
    "branch_uri",
    "main_branch_uri",
    "open_branch",
    "reference_store",
    "tagged_version",
    "writable_reference_store",
]


def branch_of(snapshot: Snapshot) -> str | None:
    """Return the snapshot's branch; None for the main branch, and for a copy of a branch under another path."""
    branch = snapshot.manifest.branch
    return branch if branch and snapshot.uri.endswith(f"/{TREE_DIR}/{branch}") else None


def main_branch_uri(snapshot: Snapshot) -> str:
    """Return the root of the dataset, whatever the snapshot's branch."""
    branch = branch_of(snapshot)
    return snapshot.uri if branch is None else snapshot.uri.removesuffix(f"/{TREE_DIR}/{branch}")


def branch_uri(snapshot: Snapshot, branch: str | None) -> str:
    """Return the URI of a branch of the same dataset; None stands for the main branch."""
    root = main_branch_uri(snapshot)
    return root if branch is None else f"{root}/{branch_directory(branch)}"


def reference_store(snapshot: Snapshot) -> Store:
    """Return the store that holds the dataset's tags and branches."""
    if branch_of(snapshot) is None:
        return snapshot.store
    return open_base(main_branch_uri(snapshot), snapshot.storage_options)


def writable_reference_store(snapshot: Snapshot) -> Store:
    """Return the store of tags and branches for a write.

    A manifest may claim to be a branch of the dataset above it, and the write would then leave the root that the caller
    opened. Raises `UnsafePath` unless the dataset above has that branch.
    """
    store, branch = reference_store(snapshot), branch_of(snapshot)
    if branch is not None and not store.exists(branch_path(branch)):
        raise UnsafePath(f"{snapshot.uri} claims to be branch {branch!r} of {store.uri}, which has no such branch")
    return store


def open_branch(
    snapshot: Snapshot,
    branch: str | None,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Open a version (by default the newest) of a branch of the same dataset.

    Raises `ReferenceNotFound` for a branch that does not exist, and as `Snapshot.open` does.
    """
    if branch == MAIN_BRANCH:
        branch = None
    if branch == branch_of(snapshot):
        return snapshot.latest() if version is None else snapshot.at(version)
    if branch is not None:
        read_branch(reference_store(snapshot), branch)
    options = snapshot.storage_options if storage_options is None else storage_options
    try:
        uri = branch_uri(snapshot, branch)
        session = snapshot.session if options is snapshot.storage_options else None  # others may read other files
        return Snapshot.open(uri, version, options, snapshot.verify_checksums, session)
    except DatasetNotFound as error:
        raise ReferenceNotFound(
            f"{main_branch_uri(snapshot)}: branch {branch or MAIN_BRANCH!r} has no version"
        ) from error


def tagged_version(snapshot: Snapshot, name: str) -> int:
    """Return the version that a tag names on the snapshot's branch.

    Raises `ReferenceNotFound` if there is no such tag, or if it names a version of another branch.
    """
    tag = read_tag(reference_store(snapshot), name)
    if tag.branch != branch_of(snapshot):
        raise ReferenceNotFound(f"{snapshot.uri}: tag {name!r} names a version of branch {tag.branch or MAIN_BRANCH!r}")
    return tag.version
