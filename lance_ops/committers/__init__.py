"""Make version N exist exactly once: by a conditional create in the dataset's own store."""

from __future__ import annotations

from lance_ops.committers.contract import CommitOutcome, Committed, Committer, Conflict, Unknown
from lance_ops.committers.put_if_absent import PutIfAbsentCommitter

__all__ = [
    "ALL_COMMITTERS",
    "CommitOutcome",
    "Committed",
    "Committer",
    "Conflict",
    "PutIfAbsentCommitter",
    "Unknown",
]

ALL_COMMITTERS: tuple[type[Committer], ...] = (PutIfAbsentCommitter,)
