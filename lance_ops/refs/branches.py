"""Create and remove branches.

The creator pins the version, commits the branch's first version, writes the branch's file, and then checks that the
parent's file still exists. The remover deletes the branch's file first and then looks for branches that came from it;
if it finds one, it puts the file back. So at least one of the two notices the other.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from lance_ops.committers import DatasetRoot, open_root
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, LanceOpsError, ReferenceNotFound
from lance_ops.core.file_names import (
    DIRECTORIES,
    TRANSACTIONS_DIR,
    TREE_DIR,
    belongs_to_this_branch,
    check_branch_name,
)
from lance_ops.refs.branch_file import Branch, branch_path, create_branch_file, list_branches, read_branch
from lance_ops.refs.branch_locations import branch_of, branch_uri, reference_store, writable_reference_store
from lance_ops.refs.clone import commit_first_version
from lance_ops.refs.file_removal import delete_files
from lance_ops.refs.tags import list_tags
from lance_ops.refs.version_pins import pinned
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo, Store
from lance_ops.table import Manifest
from lance_ops.transactions import Clone, Transaction, read_manifest

__all__ = [
    "branch_files",
    "branch_remains",
    "create_branch",
    "delete_branch",
    "has_branch_remains",
    "remove_branch_files",
]


def create_branch(source: Snapshot, name: str, storage_options: Mapping[str, str] | None = None) -> Snapshot:
    """Create a branch that begins with this version and shares the files that the version names.

    Raises `InvalidInput` for a name that is taken or not allowed, `VersionNotFound` if clean-up removed the version.
    """
    references, parent_name = writable_reference_store(source), branch_of(source)
    if references.exists(branch_path(name)):
        raise InvalidInput(f"branch {name!r} exists already")
    steps = () if parent_name is None else read_branch(references, parent_name).identifier
    options = source.storage_options if storage_options is None else storage_options
    root = open_root(branch_uri(source, name), options)
    with pinned(source):
        try:
            made = commit_first_version(
                source, root, Transaction(source.version, Clone(True, source.version, source.uri, parent_name, name))
            )
        except DatasetAlreadyExists as error:
            raise InvalidInput(
                f"branch {name!r}: {root.store.uri} holds versions already; unless another process is creating "
                "the branch now, a creation was interrupted: remove its files with branches.delete"
            ) from error
        with _removed_on_failure(root, references, name, made.manifest):
            branch = Branch(
                parent_branch=parent_name,
                identifier=(*steps, (source.version, uuid.uuid4().hex)),
                parent_version=source.version,
                create_at=int(time.time()),
                manifest_size=len(root.committer.read(made.version)),
            )
            create_branch_file(references, name, branch)
        if parent_name is not None and not references.exists(branch_path(parent_name)):
            _remove_branch(source, references, name)
            raise ReferenceNotFound(f"{references.uri}: branch {parent_name!r} was removed by another writer")
        return made


def delete_branch(snapshot: Snapshot, name: str) -> None:
    """Remove a branch of the snapshot's dataset and its files, also after an interrupted removal or creation.

    Raises `ReferenceNotFound` if there is no such branch, `InvalidInput` while other branches came from it or tags name
    its versions.
    """
    _remove_branch(snapshot, writable_reference_store(snapshot), name)


def _remove_branch(snapshot: Snapshot, references: Store, name: str) -> None:
    root = open_root(branch_uri(snapshot, name), snapshot.storage_options)
    path = branch_path(name)
    if references.exists(path):
        content = references.get(path).to_pybytes()
        _check_unused(references, name, Branch.decode(content, references.uri_of(path)))
        references.delete(path)
        try:
            _check_unused(references, name, Branch.decode(content, references.uri_of(path)))
        except InvalidInput:
            references.put_if_absent(path, content)
            raise
    elif not _has_remains(root):
        raise ReferenceNotFound(f"{references.uri} has no branch {name!r}")
    remove_branch_files(root)


def has_branch_remains(snapshot: Snapshot, name: str) -> bool:
    """Return whether files or versions of a branch exist that has no name: its removal or creation was interrupted."""
    if reference_store(snapshot).exists(branch_path(name)):
        return False
    return _has_remains(open_root(branch_uri(snapshot, name), snapshot.storage_options))


def branch_remains(snapshot: Snapshot) -> list[str]:
    """Return the names of branches that do not exist, but have files in a folder of their own.

    A branch that another process is creating or removing may be among them.
    """
    references = reference_store(snapshot)
    named = list_branches(references)
    return [name for name in _named_by_folders(references) if name not in named and has_branch_remains(snapshot, name)]


def _named_by_folders(references: Store) -> Iterator[str]:
    """Yield the names of branches that the folders beneath `tree` give."""
    above = [""]
    while above:
        prefix = above.pop()
        folders = references.list_folders(f"{TREE_DIR}/{prefix}".rstrip("/"))
        above += [f"{prefix}{folder}/" for folder in folders if folder not in DIRECTORIES]
        if prefix and not DIRECTORIES.isdisjoint(folders):
            with suppress(InvalidInput):  # no branch can have that name
                yield check_branch_name(prefix.rstrip("/"))


def _has_remains(root: DatasetRoot) -> bool:
    return root.committer.latest() is not None or next(_all_files(root.store), None) is not None


def _all_files(store: Store) -> Iterator[ObjectInfo]:
    """Yield the files of one branch, and the temporary ones of crashed writers."""
    yield from branch_files(store)
    yield from filter(_is_in_branch, store.list_temporary())


def branch_files(store: Store) -> Iterator[ObjectInfo]:
    """Yield the files of one branch, without those of branches whose directories are beneath its own."""
    return (info for info in store.list() if belongs_to_this_branch(info.path))


def remove_branch_files(root: DatasetRoot) -> None:
    """Remove transactions, then versions, the oldest first, then all other files, then external manifest store rows.

    A writer recognises the version that it read by its transaction file, so no writer may find a version without it.
    Files that a concurrent writer adds are removed too. A writer that commits after the last listing finds its own
    transaction file missing and takes its version back.

    Temporary files of crashed writers are removed too, because no clean-up looks into a removed branch's directory.
    """
    delete_files(root.store, (info.path for info in root.store.list(TRANSACTIONS_DIR)))
    for version in root.committer.versions():
        root.committer.remove(version)
    while remaining := [*_all_files(root.store)]:
        delete_files(root.store, (info.path for info in remaining))
    root.committer.forget()


@contextmanager
def _removed_on_failure(root: DatasetRoot, references: Store, name: str, made: Manifest) -> Iterator[None]:
    """Remove a new branch's files if the block, which creates the branch's file, raises.

    They stay if the branch's file may be there: then `delete_branch` removes both. If the file is another creator's,
    our first version `made` is withdrawn, because the branch is the other's.
    """
    try:
        yield
    except InvalidInput:  # another creator's file
        with suppress(LanceOpsError):
            _withdraw(root, made)
        raise
    except LanceOpsError:
        with suppress(LanceOpsError):
            if not references.exists(branch_path(name)):
                remove_branch_files(root)
        raise


def _withdraw(root: DatasetRoot, made: Manifest) -> None:
    """Remove our first version, unless the version of its number is another creator's."""
    if read_manifest(root.store, root.committer, made.version).transaction_file == made.transaction_file:
        root.committer.withdraw(made.version)
        root.store.delete(f"{TRANSACTIONS_DIR}/{made.transaction_file}")


def _is_in_branch(info: ObjectInfo) -> bool:
    return belongs_to_this_branch(info.path)


def _check_unused(references: Store, name: str, branch: Branch) -> None:
    others = {other: found for other, found in list_branches(references).items() if other != name}
    ours = branch.identifier[-1] if branch.identifier else None
    children = sorted(
        other
        for other, found in others.items()
        if found.parent_branch == name or (ours is not None and ours in found.identifier)
    )
    if children:
        raise InvalidInput(f"branch {name!r} cannot be removed: {', '.join(children)} came from it and read its files")
    tags = sorted(tag for tag, found in list_tags(references).items() if found.branch == name)
    if tags:
        raise InvalidInput(f"branch {name!r} cannot be removed: tags name its versions ({', '.join(tags)})")
