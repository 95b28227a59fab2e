"""Commit the first version of a clone, whose number is that of the version that it copies."""

from __future__ import annotations

import time
from dataclasses import replace

from lance_ops.committers import Committer
from lance_ops.core.errors import DatasetAlreadyExists, VersionNotFound
from lance_ops.store import Store
from lance_ops.table import WRITER, Manifest, flags_for
from lance_ops.transactions.committed import read_version
from lance_ops.transactions.committing.after_commit import errors_as_unknown_outcome
from lance_ops.transactions.committing.single_commit import commit_once, remove_transaction_file
from lance_ops.transactions.next_version import next_timestamp
from lance_ops.transactions.operations import Clone
from lance_ops.transactions.transaction import Transaction

__all__ = ["commit_clone"]


def commit_clone(committer: Committer, store: Store, transaction: Transaction, source: Manifest) -> Manifest:
    """Commit the transaction's clone of `source` as the dataset's first version; return its manifest.

    Raises `DatasetAlreadyExists` if there is a dataset, and `CommitStateUnknown` if the outcome is not known yet. After
    any other error, and after `DatasetAlreadyExists`, no file of the clone is left.
    """
    clone = transaction.operation
    assert isinstance(clone, Clone)
    made = replace(
        clone.first_manifest(source),
        timestamp_ns=next_timestamp(source, time.time_ns()),
        tag="",
        transaction_file=transaction.file_name,
        writer_version=WRITER,
    )
    # The flags that depend on fragments are the same for the copy, so no fragment has to be decoded again.
    reader, writer = flags_for(replace(made, fragments=source.fragments), source)
    made = replace(made, reader_feature_flags=reader, writer_feature_flags=writer)
    if committer.latest() is not None:
        raise DatasetAlreadyExists(f"{store.uri} holds a dataset already")
    if not commit_once(committer, store, transaction, made):
        raise DatasetAlreadyExists(f"{store.uri} holds a dataset already")
    _check_alone(committer, store, transaction, made)
    return made


def _check_alone(committer: Committer, store: Store, transaction: Transaction, made: Manifest) -> None:
    """Withdraw our version if another writer created a table here at the same time, under another version number.

    The other writer may have looked before our version existed, so ours must go even if its number is the lower one. Of
    two writers that look at the same time, both give up. Our version exists by now. If this check fails, nothing that
    it names may be deleted.
    """
    with errors_as_unknown_outcome(transaction, made):
        other = _first_of_another(committer, store, made)
        if other is not None:
            committer.withdraw(made.version)
    if other is not None:
        remove_transaction_file(store, transaction)
        raise DatasetAlreadyExists(f"{store.uri} holds a dataset already: version {other} was created concurrently")


def _first_of_another(committer: Committer, store: Store, made: Manifest) -> int | None:
    """Return a version that another writer's creation made, None if every version was made from ours.

    Raises `VersionNotFound` if a clean-up has removed the version that would show it.
    """
    versions = committer.versions()
    lower = [version for version in versions if version < made.version]
    higher = [version for version in versions if version > made.version]
    if lower or not higher:
        return max(lower, default=None)
    after = read_version(store, committer, higher[0])
    if after.transaction is not None and isinstance(after.transaction.operation, Clone):
        return after.version
    if after.version > made.version + 1:
        raise VersionNotFound(
            f"{store.uri}: version {made.version + 1} is gone, so it is not known which version {after.version} was "
            "made from"
        )
    return None
