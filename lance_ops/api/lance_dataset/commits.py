"""The methods of `LanceDataset` that commit operations and transactions prepared elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Self, TypedDict

from lance_ops import legacy, refs, writing
from lance_ops import transactions as internal
from lance_ops.api import transactions as public
from lance_ops.api.base_paths import BaseStoreParams, with_base_store_params
from lance_ops.api.version_handle import Handle
from lance_ops.api.write_destination import Destination, lock_of, place_of
from lance_ops.committers import DatasetRoot, open_root, with_commit_lock
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import ManifestNaming
from lance_ops.core.schema import with_dictionaries
from lance_ops.maintenance import cleanup
from lance_ops.snapshot import Snapshot
from lance_ops.table import BasePath, Fragment

__all__ = ["BulkCommitResult", "Commits"]

_TIMEOUT = timedelta(minutes=30)


class BulkCommitResult(TypedDict):
    """The result of `commit_batch`: the dataset at the new version, and the transaction that made it."""

    dataset: Commits
    merged: public.Transaction


class Commits(Handle):
    """Commits of operations and transactions.

    Each is judged against the versions committed since its `read_version`.
    """

    @classmethod
    def commit(
        cls,
        base_uri: Destination,
        operation: public.AnyOperation | public.Transaction,
        read_version: int | None = None,
        commit_lock: object | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        base_store_params: BaseStoreParams | None = None,
        commit_timeout: timedelta | None = _TIMEOUT,
    ) -> Self:
        """Commit an operation or a transaction as the next version, and return the dataset at that version.

        `read_version` is the version that the operation was planned on; only an overwrite and a restore may omit it.
        With `detached` the version made is `read_version` with the operation applied, in no history: only its number,
        which the returned dataset has, opens it. Clean-up keeps it with its files. If
        the commit fails, the operation's files stay, because they belong to the caller. `base_store_params` are storage
        options for single base paths, by URI; the returned dataset keeps them, and it keeps `commit_lock`, which is as
        for `lance_ops.dataset`. Raises `RetryableConflict`,
        `IncompatibleTransaction`, `TooManyConcurrentWriters`, and `CommitStateUnknown`; and `InvalidInput` for a
        restore of a version that may hold rows of an erasure on record.
        """
        uri, options = place_of(base_uri, storage_options)
        if base_store_params:
            options = with_base_store_params(uri, options, _bases(uri, options, operation), base_store_params) or {}
        naming = ManifestNaming.V1 if enable_v2_manifest_paths is False else ManifestNaming.V2
        root = with_commit_lock(open_root(uri, options, new_naming=naming), lock_of(base_uri, commit_lock))
        if isinstance(operation, public.Transaction):
            if commit_message is not None:
                raise InvalidInput("a transaction says its message in its properties, not in commit_message")
            transaction = operation.to_internal()
        else:
            planned = public.to_internal(operation)
            if read_version is None:
                if not isinstance(planned, internal.Overwrite | internal.Restore):
                    raise InvalidInput(f"{planned.name} needs read_version, the version it was planned on")
                read_version = root.committer.latest() or 0
            transaction = internal.Transaction(
                read_version, planned, transaction_properties=internal.with_commit_message(None, commit_message)
            )
        if isinstance(transaction.operation, internal.Clone):
            return cls.of(refs.commit_shallow_clone(transaction, root))
        transaction = _with_dictionaries(root, transaction)
        with ExitStack() as pins:
            for version in _versions_to_pin(root, transaction, detached=bool(detached)):
                kept = Snapshot.open(uri, version, storage_options=root.storage_options)
                pins.enter_context(refs.pinned(kept, looks_for_version=False))  # the commit reads its manifest
                if isinstance(transaction.operation, internal.Restore):
                    refs.check_restores_no_erased_rows(kept)
            if detached:
                return cls.of(writing.commit_detached_transaction(root, transaction))
            made = writing.commit_transaction(
                root,
                transaction,
                stable_row_ids=bool(enable_stable_row_ids) and root.committer.latest() is None,
                max_retries=max_retries,
                timeout_seconds=math.inf if commit_timeout is None else commit_timeout.total_seconds(),
            )
        cleanup.clean_up_if_due(made.version - 1, made)
        return cls.of(made)

    def resolve(self, uuid: str) -> int | None:
        """Return the version that a transaction made, or None if it made none; call it after `CommitStateUnknown`.

        None is final only when the store answers again and some minutes have passed, because a delayed request may
        still arrive. Raises `CommitStateUnknown` if clean-up has removed the evidence.
        """
        return internal.find_transaction(self._snapshot.store, self._snapshot.committer, uuid)

    @classmethod
    def commit_batch(
        cls,
        dest: Destination,
        transactions: Sequence[public.Transaction],
        commit_lock: object | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: BaseStoreParams | None = None,
        commit_timeout: timedelta | None = _TIMEOUT,
    ) -> BulkCommitResult:
        """Commit several appends as one; raise `UnsupportedFeature` for any other operation."""
        if not transactions:
            raise InvalidInput("commit_batch needs a transaction")
        fragments: list[Fragment] = []
        properties: dict[str, str] = {}
        for transaction in transactions:
            operation = public.to_internal(transaction.operation)
            if not isinstance(operation, internal.Append):
                raise UnsupportedFeature(f"{operation.name} in a batch of transactions", str(dest))
            fragments.extend(operation.fragments)
            properties |= transaction.transaction_properties
        oldest = min(transaction.read_version for transaction in transactions)
        merged = public.Transaction(oldest, public.LanceOperation.Append(fragments), transaction_properties=properties)
        made = cls.commit(
            dest,
            merged,
            None,
            commit_lock,
            storage_options,
            enable_v2_manifest_paths,
            detached,
            max_retries,
            base_store_params=base_store_params,
            commit_timeout=commit_timeout,
        )
        return BulkCommitResult(dataset=made, merged=merged)


def _versions_to_pin(root: DatasetRoot, transaction: internal.Transaction, *, detached: bool) -> tuple[int, ...]:
    """Return the older versions whose files the commit will name. Clean-up could remove these files meanwhile.

    Clean-up never removes the version that any other commit follows, because it keeps the newest one.
    """
    if isinstance(transaction.operation, internal.Restore):
        return (transaction.operation.version,)
    return (transaction.read_version,) if detached and root.committer.latest() is not None else ()


def _with_dictionaries(root: DatasetRoot, transaction: internal.Transaction) -> internal.Transaction:
    """Give the schema of a 0.1 table its dictionary values: the table's, or pending ones from the new files."""
    operation = transaction.operation
    if not isinstance(operation, internal.Merge | internal.Overwrite) or not legacy.has_pending_dictionaries(
        operation.schema, operation.fragments
    ):
        return transaction
    schema = operation.schema
    if isinstance(operation, internal.Merge):
        known = Snapshot.open(root.store.uri, transaction.read_version, root.storage_options).schema
        before = {node.id: node.dictionary for node in known.walk()}
        schema = with_dictionaries(schema, lambda field: field.dictionary or before.get(field.id))
    schema = legacy.with_pending_dictionaries(root.store, schema, operation.fragments)
    return replace(transaction, operation=replace(operation, schema=schema))


def _bases(
    uri: str, storage_options: Mapping[str, str], operation: public.AnyOperation | public.Transaction
) -> tuple[BasePath, ...]:
    """Return the base paths of the dataset, or those that the creating operation declares."""
    existing = Snapshot.open_if_exists(uri, storage_options)
    if existing is not None:
        return existing.manifest.base_paths
    begun = public.to_internal(operation.operation if isinstance(operation, public.Transaction) else operation)
    return begun.initial_bases if isinstance(begun, internal.Overwrite) else ()
