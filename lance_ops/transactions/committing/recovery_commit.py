"""Commit a version after one whose manifest cannot be read, which the retry loop cannot judge."""

from __future__ import annotations

import time
from dataclasses import replace

from lance_ops.committers import Committed, Committer, Unknown
from lance_ops.core.errors import CommitStateUnknown, RetryableConflict, UnsafeStore, WriteRefused
from lance_ops.store import Store
from lance_ops.table import Manifest, check_adds_no_violation, encode_manifest
from lance_ops.transactions.next_version import next_manifest
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.operations import Restore
from lance_ops.transactions.transaction import Transaction

__all__ = ["commit_past_unreadable"]

_SKIPPED_ROW_IDS = 1 << 32
"""What an unreadable version may have given out, for each such version: as many ids as a fragment can have rows."""


def commit_past_unreadable(committer: Committer, store: Store, readable: Manifest, newest: int) -> Manifest:
    """Commit the content of `readable` as the version after `newest`, where no version in between can be read.

    How many stable row ids those versions gave out is not known, so some are skipped. Raises `RetryableConflict` if
    another writer made the next version, and `CommitStateUnknown` if the outcome is not known yet.
    """
    skipped = _SKIPPED_ROW_IDS * (newest - readable.version) if readable.uses_stable_row_ids else 0
    stand_in = replace(readable, version=newest, next_row_id=readable.next_row_id + skipped)
    transaction = Transaction(readable.version, Restore(readable.version))
    context = ApplyContext(manifests={readable.version: readable})
    made = next_manifest(stand_in, transaction, context, time.time_ns())
    check_adds_no_violation(stand_in, made)
    encoded = transaction.encode()
    store.put_hint(transaction.path, encoded)
    try:
        outcome = committer.commit(made.version, encode_manifest(made, encoded))
    except (WriteRefused, UnsafeStore, RetryableConflict):
        store.delete(transaction.path)
        raise
    except Exception as error:  # whatever it is, the version may exist
        raise CommitStateUnknown(transaction.uuid, made.version, repr(error)) from error
    match outcome:
        case Committed():
            return made
        case Unknown(reason=reason):
            raise CommitStateUnknown(transaction.uuid, made.version, reason)
    store.delete(transaction.path)
    raise RetryableConflict(f"{store.uri}: version {made.version} appeared since the repair was planned: plan it again")
