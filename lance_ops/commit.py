"""The reference's `lance.commit`: locks around commits, and the error of a conflict."""

from lance_ops.committers import CommitLock
from lance_ops.core.errors import CommitConflict as CommitConflictError

__all__ = ["CommitConflictError", "CommitLock"]
