"""Remove a whole dataset: all its branches, and every other file beneath its root."""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.committers import DatasetRoot, open_root
from lance_ops.core.errors import CorruptFile, DatasetNotFound, InvalidInput, VersionNotFound
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.refs.branch_file import list_branches
from lance_ops.refs.branch_locations import branch_of, branch_uri
from lance_ops.refs.branches import remove_branch_files
from lance_ops.refs.file_removal import delete_files
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import read_manifest

__all__ = ["drop_dataset"]


def drop_dataset(uri: str, storage_options: Mapping[str, str] | None = None, *, ignore_not_found: bool = False) -> None:
    """Remove everything beneath a dataset's root; files under its base paths stay.

    The manifests are removed last, the newest after all others, so that an interrupted drop can be repeated. Raises
    before anything is removed: `InvalidInput` if no manifest can be read or if the root is a branch's; `UnsafePath` for
    a symbolic link that leads out of the root; `DatasetNotFound` for an empty root unless `ignore_not_found`.
    """
    root = open_root(uri, storage_options)
    store, found = root.store, _readable(root)
    paths = [info.path for info in (*store.list(), *store.list_temporary())]
    if found is None:
        if paths or root.committer.versions():
            raise InvalidInput(
                f"{store.uri} is not a dataset and is kept: no manifest can be read there. Check that the URI names a "
                "dataset, not a folder that contains one"
            )
        if ignore_not_found:
            return
        raise DatasetNotFound(f"no Lance dataset at {store.uri}: there is nothing to drop")
    if branch_of(found) is not None:
        raise InvalidInput(f"{store.uri} is branch {branch_of(found)!r} of a dataset: remove it with branches.delete")
    for branch in list_branches(store):
        remove_branch_files(open_root(branch_uri(found, branch), root.storage_options))
    versions = root.committer.versions()
    manifests = set(map(root.committer.location, versions))
    transactions = [path for path in paths if path.startswith(f"{TRANSACTIONS_DIR}/")]
    delete_files(store, transactions)  # first: a writer recognises the version that it read by its transaction's file
    others = manifests.union(transactions)
    delete_files(store, [path for path in paths if path not in others])
    root.committer.forget()  # first: without manifests nobody looks for the rows of an external manifest store
    for version in versions:
        root.committer.remove(version)
    store.clear()


def _readable(root: DatasetRoot) -> Snapshot | None:
    """Return the newest version with a readable manifest; its data may need a newer release."""
    for version in sorted(root.committer.versions(), reverse=True):
        try:
            manifest = read_manifest(root.store, root.committer, version)
        except (CorruptFile, VersionNotFound):
            continue
        return Snapshot(root.store, root.committer, manifest, root.storage_options)
    return None
