"""Which errors another attempt can mend, in Dagster's terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from lance_ops.core.errors import (
    CommitConflict,
    CommitStateUnknown,
    IncompatibleTransaction,
    LanceOpsError,
    ObjectNotFound,
    StoreError,
    TasksLost,
    UnsafeStore,
)

__all__ = ["retrying"]

_FINAL = (IncompatibleTransaction, ObjectNotFound, UnsafeStore)
_PASSING = (CommitConflict, CommitStateUnknown, StoreError, TasksLost)
_MAX_RETRIES = 3
_SECONDS_TO_WAIT = 10


@contextmanager
def retrying() -> Iterator[None]:
    """Have Dagster run the step again after a lost race, a store's failure or lost tasks; fail at once otherwise.

    Every step here may run twice: a batch whose token is in the history is not ingested again, and the other verbs plan
    on the newest version.
    """
    try:
        yield
    except _FINAL as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    except _PASSING as error:
        raise dg.RetryRequested(_MAX_RETRIES, _SECONDS_TO_WAIT) from error
    except LanceOpsError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
