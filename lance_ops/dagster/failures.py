"""Tell Dagster which errors of a step are worth another attempt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from lance_ops.core.errors import (
    CommitConflict,
    CommitStateUnknown,
    ErasureNotProven,
    HeldByRunningWork,
    IncompatibleTransaction,
    LanceOpsError,
    ObjectNotFound,
    PlanOutdated,
    StoreError,
    TasksLost,
    UnsafeStore,
)

__all__ = ["retrying"]

_FINAL = (IncompatibleTransaction, ObjectNotFound, PlanOutdated, UnsafeStore)
_PASSING = (CommitConflict, CommitStateUnknown, HeldByRunningWork, StoreError, TasksLost)
_MAX_RETRIES = 3
_SECONDS_TO_WAIT = 10


@contextmanager
def retrying() -> Iterator[None]:
    """Ask Dagster to retry the step after a lost race, a store failure or lost tasks; fail at once after other errors.

    An erasure that only running work keeps from being begun or proven is tried again, too.

    Every step may run twice. Ingestion skips a batch whose token is in the history. A verb that changes rows or columns
    or drops an index is not executed again if an earlier attempt committed; see `Attempt`. A tag, a branch or a clone
    that an earlier attempt made or removed is found; see `Verb.already_done`. The other verbs plan on the newest
    version, and find nothing to do twice.
    """
    try:
        yield
    except _FINAL as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    except _PASSING as error:
        raise dg.RetryRequested(_MAX_RETRIES, _SECONDS_TO_WAIT) from error
    except LanceOpsError as error:
        if isinstance(error, ErasureNotProven) and error.retry_may_help:
            raise dg.RetryRequested(_MAX_RETRIES, _SECONDS_TO_WAIT) from error
        raise dg.Failure(str(error), allow_retries=False) from error
