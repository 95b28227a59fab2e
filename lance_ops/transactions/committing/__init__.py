"""Make a transaction the next version: the retry loop, and what it needs around it."""

from lance_ops.transactions.committing.clone_commit import commit_clone
from lance_ops.transactions.committing.commit_loop import MAX_RETRIES, commit
from lance_ops.transactions.committing.commit_result import CommitResult

__all__ = [
    "MAX_RETRIES",
    "CommitResult",
    "commit",
    "commit_clone",
]
