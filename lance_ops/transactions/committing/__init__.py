"""Commit a transaction as the next version: the retry loop, and the checks before and after each attempt."""

from lance_ops.transactions.committing.clone_commit import commit_clone
from lance_ops.transactions.committing.commit_loop import MAX_RETRIES, commit
from lance_ops.transactions.committing.commit_result import CommitResult
from lance_ops.transactions.committing.detached_commit import commit_detached
from lance_ops.transactions.committing.recovery_commit import commit_past_unreadable

__all__ = [
    "MAX_RETRIES",
    "CommitResult",
    "commit",
    "commit_clone",
    "commit_detached",
    "commit_past_unreadable",
]
