"""Say whether Dagster has started a failed run again, or may still do so."""

from __future__ import annotations

from datetime import datetime, timedelta

import dagster as dg

__all__ = ["awaits_retry", "was_retried"]

_WILL_RETRY_TAG = "dagster/will_retry"
_RETRY_RUN_TAG = "dagster/auto_retry_run_id"
_TIME_TO_DECIDE = timedelta(minutes=1)
"""How long Dagster may take after a failure to store whether it retries the run."""
_TIME_TO_RETRY = timedelta(minutes=10)
"""How long Dagster may take after a failure to start the retry that it has promised."""


def was_retried(run: dg.DagsterRun) -> bool:
    """Return whether Dagster has started a failed run again."""
    return _RETRY_RUN_TAG in run.tags


def awaits_retry(instance: dg.DagsterInstance, run: dg.DagsterRun, failed_at: datetime, now: datetime) -> bool:
    """Return whether Dagster has still to say whether it retries a failed run, or to start the promised retry.

    It never starts one whose code location does not load, or whose first run was deleted. So the answer is no when ten
    minutes have passed: the run has failed.
    """
    if was_retried(run):
        return False
    promise, waited = run.tags.get(_WILL_RETRY_TAG), now - failed_at
    if promise is None:
        return instance.run_retries_enabled and waited < _TIME_TO_DECIDE
    return promise == "true" and waited < _TIME_TO_RETRY
