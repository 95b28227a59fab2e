"""Tell whether a version still belongs to the dataset, and to the history, that a plan was made on.

A dataset can be removed and another one created under its name. The transaction's file tells the two apart: removing a
dataset deletes this file before the manifest, and clean-up deletes it after the manifest. While the file exists, so
does the dataset. Without the file the manifest tells, and without the manifest a data file that both versions name.

A version can be stray: its manifest stands under a number that the table's history did not produce. This happens when
clean-up removed the version of that number, and a delayed request then creates it again. No later version was made
from a stray one. A version is in the history if it is the newest, if the next retained version restores it or names a
file that it brought, or if the next version's transaction, replayed on it, gives the next version. If the manifests
between the two cannot be read, their transactions are replayed first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from lance_ops.committers import Committer
from lance_ops.core.errors import LanceOpsError, VersionNotFound
from lance_ops.core.file_names import DATA_DIR, TRANSACTIONS_DIR
from lance_ops.store import Store
from lance_ops.table import Fragment, Manifest
from lance_ops.transactions import operations
from lance_ops.transactions.committed.committed_versions import CommittedVersion, read_manifest
from lance_ops.transactions.next_version import next_manifest
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.transaction import Transaction

__all__ = [
    "descends_from",
    "is_in_history",
    "is_listed_in_same_dataset",
    "is_same_dataset",
    "share_data_file",
    "version_set_back_to",
    "was_made_in_same_dataset",
]

_Files: TypeAlias = frozenset[tuple[int | None, str]]
_ReadManifest: TypeAlias = Callable[[int], Manifest]


def is_same_dataset(store: Store, committer: Committer, known: Manifest) -> bool:
    """Return whether the dataset still holds the version `known`; raise `VersionNotFound` if it has none of its number.

    If it does, everything read from the dataset between the read of `known` and now belongs to the same dataset.
    """
    if _has_transaction_file(store, known):
        return True
    return _is_same_version(read_manifest(store, committer, known.version), known)


def is_listed_in_same_dataset(store: Store, committer: Committer, known: Manifest) -> bool:
    """Return whether the committer's last listing shows that the dataset held the version `known`.

    False if the listing does not tell; then `is_same_dataset` asks the store.
    """
    if committer.as_listed(known.version) is None:
        return False
    return _is_same_version(read_manifest(store, committer, known.version, as_listed=True), known)


def was_made_in_same_dataset(store: Store, committer: Committer, made: Manifest, before: Manifest) -> bool:
    """Return whether the committed version `made` is in the dataset of `before`, the version that it was made from.

    Clean-up may remove `before` as soon as `made` exists, but it keeps the transaction and the files that `made` names.
    """
    try:
        return is_same_dataset(store, committer, before)
    except VersionNotFound:
        return _has_transaction_file(store, made) and _has_shared_data_file(store, made, before)


def share_data_file(one: Manifest, other: Manifest) -> bool:
    """Return whether two versions name the same data file; versions of different datasets never do."""
    ids = set(one.fragments.ids) & set(other.fragments.ids)
    names = {file.path for fragment in one.fragments.having(ids) for file in fragment.files}
    return any(file.path in names for fragment in other.fragments.having(ids) for file in fragment.files)


def version_set_back_to(version: CommittedVersion) -> int | None:
    """Return the version that a restore or an overwrite set the table back to, 0 for the empty table.

    None for a version that another operation made: all rows and changes of the versions before it still count.
    """
    stored = version.stored_transaction
    if stored is None:
        return None
    if stored.operation_type is operations.Overwrite:
        return 0 if version.version > 1 else None  # the first version has none before it
    if stored.operation_type is operations.Restore:
        operation = stored.decoded.operation
        assert isinstance(operation, operations.Restore)
        return operation.version
    return None


def is_in_history(
    version: CommittedVersion,
    after: CommittedVersion | None,
    read: _ReadManifest,
    between: Sequence[Transaction | None] = (),
) -> bool | None:
    """Return whether a version is in the table's history, and not stray.

    `after` is the next retained version, None for the newest version. `read` returns the manifests of other versions.
    `between` are the transactions of the versions between the two, if their manifests cannot be read; None for an
    unknown transaction. Returns None if the evidence is gone.
    """
    if after is None or _restores(after, version.manifest):
        return True
    added = _added_fragments(version)
    names_added_file = _names_one_of(after.manifest, added, _files(added))
    made = after.manifest
    context = ApplyContext({}, made.data_format.version, made.uses_stable_row_ids)
    return names_added_file or _is_replayed(version.manifest, after, _fragments, read, context, between)


def descends_from(after: CommittedVersion, made: Manifest, before: Manifest, read: _ReadManifest) -> bool:
    """Return whether the version `after` was made from `made`, which was made from `before`.

    `read` returns the manifests of other versions. False also if the evidence cannot be read.
    """
    new = made.fragments.changes_since(before.fragments).new
    added = _files(new) - _files(before.fragments.having({fragment.id for fragment in new}))
    if _names_one_of(after.manifest, new, added):
        return True
    try:
        return _is_replayed(made, after, _content, read, ApplyContext()) is True
    except LanceOpsError:
        return False


def _is_replayed(
    made: Manifest,
    after: CommittedVersion,
    compared: Callable[[Manifest], object],
    read: _ReadManifest,
    context: ApplyContext,
    between: Sequence[Transaction | None] = (),
) -> bool | None:
    """Return whether the transaction of `after`, applied to `made` in a context, gives `after` in what is `compared`.

    The transactions `between` are applied first. None if a transaction, or a version that it needs, is gone.
    """
    if after.version != made.version + len(between) + 1:
        return None
    replayed = made
    for transaction in (*between, after.transaction):
        if transaction is None:
            return None
        try:
            needed = {version: read(version) for version in transaction.operation.needed_versions}
        except VersionNotFound:
            return None
        try:
            replayed = next_manifest(replayed, transaction, replace(context, manifests=needed), 0)
        except LanceOpsError:
            return False
    return compared(replayed) == compared(after.manifest)


def _restores(after: CommittedVersion, old: Manifest) -> bool:
    """Return whether a version was made by restoring `old`, and not a version that had its number before."""
    stored, made = after.stored_transaction, after.manifest
    if stored is None or stored.operation_type is not operations.Restore:
        return False
    is_named = old.version in stored.decoded.operation.needed_versions
    return is_named and made.fragments == old.fragments and _content(made) == _content(old)


def _fragments(manifest: Manifest) -> tuple[object, ...]:
    return manifest.fragments, manifest.max_fragment_id


def _content(manifest: Manifest) -> tuple[object, ...]:
    """Return the parts that differ between versions with different origins, also if any operation made them."""
    return (
        _files(manifest.fragments),
        manifest.config,
        manifest.table_metadata,
        manifest.schema.metadata,
        [(field.id, field.name, field.metadata) for field in manifest.schema.walk()],
        {index.uuid for index in manifest.indices},
        set(manifest.base_paths),
    )


def _added_fragments(version: CommittedVersion) -> tuple[Fragment, ...]:
    """Return the fragments that a version added, if its transaction names them: they have the highest ids."""
    added: tuple[Fragment, ...] = ()
    match version.transaction.operation if version.transaction else None:
        case (
            operations.Append(fragments=new)
            | operations.Overwrite(fragments=new)
            | operations.Update(new_fragments=new)
        ):
            added = new
    fragments = version.manifest.fragments
    return fragments[len(fragments) - len(added) :] if len(added) <= len(fragments) else ()


def _names_one_of(manifest: Manifest, fragments: Iterable[Fragment], files: _Files) -> bool:
    """Return whether a version names one of the files in one of the fragments."""
    return not files.isdisjoint(_files(manifest.fragments.having({fragment.id for fragment in fragments})))


def _files(fragments: Iterable[Fragment]) -> _Files:
    """Return the data files and deletion files of the fragments, by base path and name."""
    names: set[tuple[int | None, str]] = set()
    for fragment in fragments:
        names.update(file.place for file in fragment.files)
        if fragment.deletion_file is not None:
            names.add((fragment.deletion_file.base_id, fragment.deletion_file.name(fragment.id)))
    return frozenset(names)


def _is_same_version(one: Manifest, other: Manifest) -> bool:
    return (one.transaction_file, one.timestamp_ns) == (other.transaction_file, other.timestamp_ns)


def _has_transaction_file(store: Store, manifest: Manifest) -> bool:
    return bool(manifest.transaction_file) and store.exists(f"{TRANSACTIONS_DIR}/{manifest.transaction_file}")


def _has_shared_data_file(store: Store, made: Manifest, before: Manifest) -> bool:
    """Return whether a data file under the root that both versions name exists; true if they share none."""
    shared = before.fragments.having(set(made.fragments.ids) & set(before.fragments.ids))
    names = {file.path for fragment in shared for file in fragment.files if file.base_id is None}
    for fragment in made.fragments.having({fragment.id for fragment in shared}):
        for file in fragment.files:
            if file.base_id is None and file.path in names:
                return store.exists(f"{DATA_DIR}/{file.path}")
    return True
