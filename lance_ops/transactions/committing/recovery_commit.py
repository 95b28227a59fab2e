"""Commit a version after versions that cannot be read. The loop of `commit` cannot do that: it judges each of them."""

from __future__ import annotations

import time
from dataclasses import replace

from lance_ops.committers import Committer
from lance_ops.core.errors import RetryableConflict
from lance_ops.store import Store
from lance_ops.table import Manifest, check_adds_no_violation, check_writable
from lance_ops.transactions.committing.before_commit import check_has_next
from lance_ops.transactions.committing.single_commit import commit_once
from lance_ops.transactions.next_version import next_manifest
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.operations import Restore
from lance_ops.transactions.transaction import Transaction

__all__ = ["commit_past_unreadable", "restore_as_next_version"]

_SKIPPED_ROW_IDS = 1 << 32
_SKIPPED_FRAGMENT_IDS = 1 << 20
"""What an unreadable version may have given out, for each such version: as many row ids as a fragment can have rows,
and as many fragment ids as a large table has fragments."""


def commit_past_unreadable(committer: Committer, store: Store, readable: Manifest, newest: int) -> Manifest:
    """Commit the content of `readable` as the version after `newest`, where no version in between can be read.

    How many ids those versions gave out to fragments and rows is not known, so some are skipped. Raises as
    `restore_as_next_version` does.
    """
    num_lost = newest - readable.version
    skipped = _SKIPPED_ROW_IDS * num_lost if readable.uses_stable_row_ids else 0
    stand_in = replace(
        readable,
        version=newest,
        max_fragment_id=readable.next_fragment_id - 1 + _SKIPPED_FRAGMENT_IDS * num_lost,
        next_row_id=readable.next_row_id + skipped,
    )
    return restore_as_next_version(committer, store, readable, stand_in)


def restore_as_next_version(committer: Committer, store: Store, old: Manifest, newest: Manifest) -> Manifest:
    """Commit the content of `old` as the version directly after `newest`.

    If another writer made that version, nothing is committed. So only versions that the caller knows are taken back.
    Raises `RetryableConflict` if another writer made the next version, `InvalidInput` if no number is left for one,
    `UnsupportedFeature` if one of the two versions needs a newer writer, and `CommitStateUnknown` if the outcome is not
    known yet.
    """
    check_has_next(store, newest)
    check_writable(newest, f"{store.uri} at version {newest.version}")
    transaction = Transaction(old.version, Restore(old.version))
    made = next_manifest(newest, transaction, ApplyContext(manifests={old.version: old}), time.time_ns())
    check_adds_no_violation(newest, made)
    if not commit_once(committer, store, transaction, made):
        raise RetryableConflict(
            f"{store.uri}: version {made.version} appeared since the repair was planned: plan it again"
        )
    return made
