"""Commit a transaction as a detached version: one that is in no history and that only its number opens.

A detached version is the version that the transaction was planned on, with the operation applied. It takes no part in
the race for the next version, so no concurrent transaction is judged. Its number is random, with the highest bit set.
"""

from __future__ import annotations

import time
from dataclasses import replace

from lance_ops.committers import Committer
from lance_ops.core.errors import RetryableConflict, UnsupportedFeature
from lance_ops.core.file_names import ManifestNaming, new_detached_version, parse_manifest_name
from lance_ops.store import Store
from lance_ops.table import check_adds_no_violation, check_writable
from lance_ops.transactions.committed import read_manifest
from lance_ops.transactions.committing.commit_result import CommitResult
from lance_ops.transactions.committing.single_commit import commit_once
from lance_ops.transactions.next_version import next_manifest
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.transaction import Transaction

__all__ = ["commit_detached"]


def commit_detached(committer: Committer, store: Store, transaction: Transaction) -> CommitResult:
    """Commit a transaction as a detached version of an existing dataset; the files that it brings stay if this fails.

    Raises `VersionNotFound` if the version that it was planned on is gone. Raises `UnsupportedFeature` for a new
    dataset, for manifests of the old names and with a manifest store. Raises `RetryableConflict` if another writer drew
    the same number, and `CommitStateUnknown`.
    """
    _check_supported(committer, store)
    planned = read_manifest(store, committer, transaction.read_version)
    check_writable(planned, f"{store.uri} at version {planned.version}")
    needed = {version: read_manifest(store, committer, version) for version in transaction.operation.needed_versions}
    made = next_manifest(planned, transaction, ApplyContext(needed), time.time_ns())
    made = replace(made, version=new_detached_version())
    check_adds_no_violation(planned, made)
    if not commit_once(committer, store, transaction, made):
        raise RetryableConflict(f"{store.uri}: another writer drew the same detached version: commit again")
    return CommitResult(made.version, made, transaction)


def _check_supported(committer: Committer, store: Store) -> None:
    if not committer.takes_detached:
        raise UnsupportedFeature("a detached commit with a manifest store", store.uri)
    latest = committer.latest()
    if latest is None:
        raise UnsupportedFeature("a detached commit that creates a dataset", store.uri)
    named = parse_manifest_name(committer.location(latest).rpartition("/")[2])
    if named is None or named[1] is ManifestNaming.V1:
        raise UnsupportedFeature("a detached commit to a dataset with manifests of the old names", store.uri)
