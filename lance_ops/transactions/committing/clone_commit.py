"""Commit the first version of a copy, which has the number of the version that it is a copy of."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from lance_ops.committers import Committed, Committer, Unknown
from lance_ops.core.errors import CommitStateUnknown, DatasetAlreadyExists, LanceOpsError, UnsafeStore, WriteRefused
from lance_ops.store import Store
from lance_ops.table import WRITER, Manifest, encode_manifest, flags_for
from lance_ops.transactions.operations import Clone
from lance_ops.transactions.transaction import Transaction

__all__ = ["commit_clone"]


def commit_clone(committer: Committer, store: Store, transaction: Transaction, source: Manifest) -> Manifest:
    """Make the clone of `source` that the transaction says the first version of the dataset; return its manifest.

    Raises `DatasetAlreadyExists` if one is there, and `CommitStateUnknown` when only the future can tell; after any
    other error, as after the first, nothing of it is left.
    """
    clone = transaction.operation
    assert isinstance(clone, Clone)
    made = replace(
        clone.first_manifest(source),
        timestamp_ns=max(time.time_ns(), source.timestamp_ns or 0),
        tag="",
        transaction_file=transaction.file_name,
        writer_version=WRITER,
    )
    # What the source says of its fragments holds of the copy's, so that none is decoded.
    reader, writer = flags_for(replace(made, fragments=source.fragments), source)
    made = replace(made, reader_feature_flags=reader, writer_feature_flags=writer)
    if committer.latest() is not None:
        raise DatasetAlreadyExists(f"{store.uri} holds a dataset already")
    encoded = transaction.encode()
    store.put(transaction.path, encoded, durable=False)
    try:
        outcome = committer.commit(made.version, encode_manifest(made, encoded), after=[transaction.path])
    except (WriteRefused, UnsafeStore):
        _remove(store, transaction)
        raise
    except Exception as error:  # of whatever kind: the version may be there
        raise CommitStateUnknown(transaction.uuid, made.version, repr(error)) from error
    match outcome:
        case Committed():
            _check_alone(committer, store, transaction, made.version)
            return made
        case Unknown(reason=reason):
            raise CommitStateUnknown(transaction.uuid, made.version, reason)
    _remove(store, transaction)
    raise DatasetAlreadyExists(f"{store.uri} holds a dataset already")


def _check_alone(committer: Committer, store: Store, transaction: Transaction, version: int) -> None:
    """Withdraw our version if somebody began another table here at the same moment, under another number.

    Ours stands by now: where this cannot be told, nothing that it names may go.
    """
    try:
        others = [other for other in committer.versions() if other < version]
        if others:
            committer.withdraw(version)
    except LanceOpsError as error:
        reason = f"it is there, but not whether another dataset was begun meanwhile: {error}"
        raise CommitStateUnknown(transaction.uuid, version, reason) from error
    if others:
        _remove(store, transaction)
        raise DatasetAlreadyExists(f"{store.uri} holds a dataset already: version {others[-1]} was made meanwhile")


def _remove(store: Store, transaction: Transaction) -> None:
    with suppress(LanceOpsError):  # what cannot be deleted now is left to clean-up
        store.delete(transaction.path)
