"""Commit a transaction as the next version: the retry loop, and the checks before and after each attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.transactions.committing.before_commit import dataset_replaced_error
    from lance_ops.transactions.committing.clone_commit import commit_clone
    from lance_ops.transactions.committing.commit_loop import MAX_RETRIES, commit
    from lance_ops.transactions.committing.commit_result import CommitResult
    from lance_ops.transactions.committing.detached_commit import commit_detached
    from lance_ops.transactions.committing.recovery_commit import commit_past_unreadable, restore_as_next_version

__all__ = [
    "MAX_RETRIES",
    "CommitResult",
    "commit",
    "commit_clone",
    "commit_detached",
    "commit_past_unreadable",
    "dataset_replaced_error",
    "restore_as_next_version",
]

_MODULES = {
    "MAX_RETRIES": "commit_loop",
    "CommitResult": "commit_result",
    "commit": "commit_loop",
    "commit_clone": "clone_commit",
    "commit_detached": "detached_commit",
    "commit_past_unreadable": "recovery_commit",
    "dataset_replaced_error": "before_commit",
    "restore_as_next_version": "recovery_commit",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
