"""Commit a version after versions that cannot be read. The loop of `commit` cannot do that: it judges each of them."""

from __future__ import annotations

import time
from dataclasses import replace

from lance_ops.committers import Committer
from lance_ops.core.errors import RetryableConflict
from lance_ops.store import Store
from lance_ops.table import Manifest, check_adds_no_violation
from lance_ops.transactions.committing.single_commit import commit_once
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
    if not commit_once(committer, store, transaction, made):
        raise RetryableConflict(
            f"{store.uri}: version {made.version} appeared since the repair was planned: plan it again"
        )
    return made
