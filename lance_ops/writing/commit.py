"""Commit an operation that was planned on a snapshot, and delete its pending files when the commit fails."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lance_ops import transactions
from lance_ops.committers import DatasetRoot
from lance_ops.core.errors import DatasetAlreadyExists, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.table import BasePath, Manifest
from lance_ops.transactions import (
    MAX_RETRIES,
    Operation,
    Overwrite,
    PendingFiles,
    Transaction,
    commit,
)

__all__ = [
    "commit_detached_transaction",
    "commit_operation",
    "commit_transaction",
    "create_dataset",
]


def commit_operation(
    snapshot: Snapshot,
    operation: Operation,
    *,
    properties: Mapping[str, str] | None = None,
    pending: PendingFiles | None = None,
    file_version: FileVersion | None = None,
    max_retries: int = MAX_RETRIES,
) -> Snapshot:
    """Commit an operation that was planned on this snapshot; return the snapshot of the version it made.

    `pending` are the files that the operation brings into the table. Those that are not durable are synced before the
    version appears. All are abandoned when the commit fails for certain, and when another commit with the same token
    did the work. After `CommitStateUnknown` they stay. The other errors are those of `transactions.commit`.
    """
    transaction = Transaction(snapshot.version, operation, transaction_properties=dict(properties or {}))
    root = DatasetRoot(snapshot.store, snapshot.committer, snapshot.storage_options)
    manifest = _commit(root, transaction, snapshot.manifest, pending or PendingFiles(), file_version, max_retries)
    return snapshot.with_manifest(manifest)


def create_dataset(
    root: DatasetRoot,
    schema: Schema,
    pending: PendingFiles,
    file_version: FileVersion,
    *,
    stable_row_ids: bool = False,
    base_paths: tuple[BasePath, ...] = (),
    config: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    keep_if_there: bool = False,
) -> Snapshot:
    """Commit version 1 of a dataset with the pending fragments; raise `DatasetAlreadyExists` if there is one already.

    `pending` is as for `commit_operation`. With `keep_if_there` the files stay after `DatasetAlreadyExists`: the caller
    commits them to the dataset that is there.
    """
    operation = Overwrite(pending.fragments, schema, config or {}, base_paths)
    transaction = Transaction(0, operation, transaction_properties=dict(properties or {}))
    manifest = _commit(
        root,
        transaction,
        None,
        pending,
        file_version,
        stable_row_ids=stable_row_ids,
        kept_after=(DatasetAlreadyExists,) if keep_if_there else (),
    )
    return Snapshot(root.store, root.committer, manifest, root.storage_options)


def commit_transaction(
    root: DatasetRoot,
    transaction: Transaction,
    *,
    stable_row_ids: bool = False,
    max_retries: int = MAX_RETRIES,
    timeout_seconds: float = math.inf,
) -> Snapshot:
    """Commit a transaction that the caller prepared. Its files stay even if the commit fails, as they are the caller's.

    The errors are those of `transactions.commit`.
    """
    result = commit(
        root.committer,
        root.store,
        transaction,
        stable_row_ids=stable_row_ids,
        storage_options=root.storage_options,
        max_retries=max_retries,
        timeout_seconds=timeout_seconds,
    )
    return Snapshot(root.store, root.committer, result.manifest, root.storage_options)


def commit_detached_transaction(root: DatasetRoot, transaction: Transaction) -> Snapshot:
    """Commit a prepared transaction as a detached version; see `transactions.commit_detached`."""
    result = transactions.commit_detached(root.committer, root.store, transaction)
    return Snapshot(root.store, root.committer, result.manifest, root.storage_options)


def _check_counts(base: Manifest, operation: Operation, uri: str) -> None:
    """Refuse to build on a manifest without a writer's name, because its row counts may be wrong."""
    if base.writer_version is None and not isinstance(operation, Overwrite):
        raise UnsupportedFeature(
            "changing a table whose manifest names no writer (its row counts may be wrong: copy it with write_dataset)",
            uri,
        )


def _commit(
    root: DatasetRoot,
    transaction: Transaction,
    base: Manifest | None,
    pending: PendingFiles,
    file_version: FileVersion | None,
    max_retries: int = MAX_RETRIES,
    *,
    stable_row_ids: bool = False,
    kept_after: tuple[type[Exception], ...] = (),
) -> Manifest:
    storage_version = file_version.value if file_version else None
    with pending.abandoned_unless_committed(kept_after=kept_after):
        if base is not None:
            _check_counts(base, transaction.operation, root.store.uri)
        result = commit(
            root.committer,
            root.store,
            transaction,
            base=base,
            data_storage_version=storage_version,
            max_retries=max_retries,
            stable_row_ids=stable_row_ids,
            storage_options=root.storage_options,
            after=pending.unsynced,
        )
    if result.transaction.uuid != transaction.uuid:  # another commit with the same token did the work
        pending.abandon()
    return result.manifest
