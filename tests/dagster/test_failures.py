from __future__ import annotations

import dagster as dg
import pytest

from lance_ops.dagster.failures import retrying
from lance_ops.errors import (
    CommitStateUnknown,
    ErasureNotProven,
    HeldByRunningWork,
    IncompatibleTransaction,
    InvalidInput,
    LanceOpsError,
    ObjectNotFound,
    StoreError,
    TasksLost,
    TooManyConcurrentWriters,
)

pytestmark = pytest.mark.dagster


@pytest.mark.parametrize(
    "error",
    [
        TooManyConcurrentWriters("busy"),
        CommitStateUnknown("uuid", 3, "timeout"),
        StoreError("503"),
        ErasureNotProven("a file has no version", retry_may_help=True),
        HeldByRunningWork("version 3"),
        TasksLost("a worker died"),
    ],
)
def test_transient_errors_are_retried(error: LanceOpsError) -> None:
    with pytest.raises(dg.RetryRequested) as caught, retrying():
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("no such column"),
        IncompatibleTransaction("overwritten"),
        ObjectNotFound("a.lance"),
        ErasureNotProven("metadata states a value"),
    ],
)
def test_permanent_errors_fail_at_once_with_their_own_message(error: LanceOpsError) -> None:
    with pytest.raises(dg.Failure) as caught, retrying():
        raise error
    assert caught.value.description == str(error)
    assert caught.value.allow_retries is False


def test_errors_of_other_libraries_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), retrying():
        raise ZeroDivisionError
