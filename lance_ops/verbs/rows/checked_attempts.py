"""Attempt a change of rows again after a conflict, and check the version of each attempt first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from lance_ops.api import LanceDataset
from lance_ops.core.errors import RetryableConflict, TooManyConcurrentWriters
from lance_ops.snapshot import Snapshot
from lance_ops.verbs.contract import Execution, VerbResult
from lance_ops.writing import retry_conflicts

__all__ = ["change_rows"]

_RETRY_TIMEOUT = timedelta(seconds=30)


def change_rows(
    work: Execution,
    change: Callable[[LanceDataset, int], VerbResult],
    check: Callable[[LanceDataset], None] | None,
) -> VerbResult:
    """Call `change` with the dataset and the number of retries after conflicts.

    `check` raises if the change is not allowed on a version, such as for too many rows. With it, `change` must not
    retry: it would find rows in a version that is not checked. So this function retries both on the newest version.
    """
    if check is None:
        return change(work.data, work.retries)

    def attempt(current: Snapshot) -> VerbResult:
        data = LanceDataset.of(current)
        check(data)
        try:
            return change(data, 0)
        except TooManyConcurrentWriters as conflict:
            raise RetryableConflict(str(conflict.__cause__)) from conflict

    return retry_conflicts(work.data.snapshot, attempt, work.retries, _RETRY_TIMEOUT)
