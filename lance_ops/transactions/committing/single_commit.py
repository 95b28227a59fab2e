"""Commit a manifest once, where there is no concurrent transaction to judge and so nothing to retry."""

from __future__ import annotations

from contextlib import suppress

from lance_ops.committers import Committed, Committer, Unknown
from lance_ops.core.errors import CommitStateUnknown, LanceOpsError, RetryableConflict, UnsafeStore, WriteRefused
from lance_ops.store import Store
from lance_ops.table import Manifest, encode_manifest
from lance_ops.transactions.transaction import Transaction

__all__ = ["commit_once", "remove_transaction_file"]


def commit_once(committer: Committer, store: Store, transaction: Transaction, made: Manifest) -> bool:
    """Write the transaction's file and commit the manifest `made`; return False if another writer has that version.

    Raises `CommitStateUnknown` if the version may exist. After any other error, and after False, the transaction's file
    is removed, because no version names it.
    """
    encoded = transaction.encode()
    data = encode_manifest(made, encoded)
    try:
        store.put(transaction.path, encoded, durable=False)
    except Exception:
        remove_transaction_file(store, transaction)  # a write that fails may leave the file there
        raise
    try:
        outcome = committer.commit(made.version, data, after=[transaction.path])
    except (WriteRefused, UnsafeStore, RetryableConflict):
        remove_transaction_file(store, transaction)
        raise
    except Exception as error:  # whatever it is, the version may exist
        raise CommitStateUnknown(transaction.uuid, made.version, repr(error)) from error
    match outcome:
        case Committed():
            return True
        case Unknown(reason=reason):
            raise CommitStateUnknown(transaction.uuid, made.version, reason)
    remove_transaction_file(store, transaction)
    return False


def remove_transaction_file(store: Store, transaction: Transaction) -> None:
    """Remove the file of a transaction that made no version."""
    with suppress(LanceOpsError):  # clean-up removes what cannot be deleted now
        store.delete(transaction.path)
