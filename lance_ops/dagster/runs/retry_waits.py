"""Say how long a sensor waits before it asks again for a run that failed."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["wait_before_retry"]

_FIRST_WAIT = timedelta(minutes=5)
_LONGEST_WAIT = timedelta(hours=6)


def wait_before_retry(num_failed: int) -> timedelta:
    """Return how long to wait before the next attempt.

    The wait is five minutes after the first failure. Each further failure doubles it, to at most six hours.
    """
    wait = _FIRST_WAIT
    for _ in range(num_failed - 1):
        wait = min(2 * wait, _LONGEST_WAIT)
    return wait
