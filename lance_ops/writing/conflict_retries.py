"""Call a verb again on the newest version after it lost to a concurrent commit."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from lance_ops.core.errors import (
    IncompatibleTransaction,
    InvalidInput,
    RetryableConflict,
    TooManyConcurrentWriters,
    VersionNotFound,
)
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import is_same_dataset

__all__ = ["CONFLICT_RETRIES", "retry_conflicts"]

T = TypeVar("T")

CONFLICT_RETRIES = 10
"""How often a verb begins again after a conflict, unless its caller says otherwise."""

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 2.0


def retry_conflicts(
    snapshot: Snapshot,
    attempt: Callable[[Snapshot], T],
    retries: int,
    timeout: timedelta | None = None,
    *,
    from_first_conflict: bool = False,
) -> T:
    """Call `attempt` with the snapshot; after a conflict, or if clean-up removed the version, with the newest one.

    Between attempts it waits for a random time with a growing limit, so that competing writers drift apart. No attempt
    begins when `timeout` is over; an attempt that runs is not ended. The time counts from the first attempt, or from
    the first conflict: then an attempt of any length is retried at least once, if `retries` allow it. Raises
    `TooManyConcurrentWriters` when the retries or the time are used up, and `InvalidInput` for a negative number.
    Raises `VersionNotFound` if two attempts in turn miss the same version: it is one that the caller asks for. Raises
    `IncompatibleTransaction` if the dataset was removed and another one was created in its place.
    """
    if retries < 0:
        raise InvalidInput(f"the number of conflict retries must not be negative, not {retries}")
    if timeout is not None and timeout < timedelta(0):
        raise InvalidInput(f"the timeout of conflict retries must not be negative, not {timeout}")
    seconds = math.inf if timeout is None else timeout.total_seconds()
    deadline = math.inf if from_first_conflict else time.monotonic() + seconds
    current, missing = snapshot, ""
    for retry in range(retries + 1):
        try:
            return attempt(current)
        except (RetryableConflict, VersionNotFound) as conflict:
            if isinstance(conflict, VersionNotFound) and str(conflict) == missing:
                raise
            missing = str(conflict) if isinstance(conflict, VersionNotFound) else ""
            if retry == retries or time.monotonic() >= deadline:
                limit = "no retry is left" if retry == retries else f"{seconds:g} s are over"
                raise TooManyConcurrentWriters(
                    f"{snapshot.uri}: gave up after {retry + 1} attempts, because {limit}: {conflict}"
                ) from conflict
            deadline = min(deadline, time.monotonic() + seconds)
        time.sleep(random.uniform(0, min(_FIRST_PAUSE_SECONDS * 2**retry, _LONGEST_PAUSE_SECONDS)))
        current = _newest_of_same_dataset(current)
    raise AssertionError("the loop returns or raises")


def _newest_of_same_dataset(snapshot: Snapshot) -> Snapshot:
    newest = snapshot.latest()
    try:
        is_same = is_same_dataset(snapshot.store, snapshot.committer, snapshot.manifest)
    except VersionNotFound:
        is_same = newest.version > snapshot.version  # clean-up removes versions, but never the newest
    if not is_same:
        raise IncompatibleTransaction(
            f"{snapshot.uri}: the dataset was removed, and another one was created in its place: open it again"
        )
    return newest
