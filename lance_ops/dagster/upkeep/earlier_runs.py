"""Decide whether the sensor asks for upkeep again, after runs that were asked for the same debt and did not pay it.

A step that cannot succeed on the version is fruitless, and no longer owed. A debt may still stay after a run: the run
met a passing error, as of the store, its process was lost, a person cancelled it, or it ended without a payment. A
failure delays the next run, a cancellation forbids it, and a success does not delay it.
"""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.runs import awaits_retry, wait_before_retry

__all__ = ["EarlierRuns"]

_RUN_KEY_TAG = "dagster/run_key"
_AFTER = "; after run "  # what stands between the debt and the run before, in a key
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_NUM_RUNS_READ = 100
"""How many runs of the job are read: the newest ones that have ended."""


@dataclass(frozen=True)
class EarlierRuns:
    """The runs that were asked for one debt and have ended, the newest first, of the newest 100 of the job.

    `debt_key` names the owed steps at their version.
    """

    debt_key: str
    records: tuple[dg.RunRecord, ...] = ()

    @classmethod
    def of(cls, instance: dg.DagsterInstance, job_name: str, debt_key: str) -> EarlierRuns:
        """Find the runs by their keys, which `run_key` made."""
        ended = dg.RunsFilter(job_name=job_name, statuses=_ENDED)
        records = instance.get_run_records(ended, limit=_NUM_RUNS_READ)
        return cls(debt_key, tuple(record for record in records if _debt_key_of(record.dagster_run) == debt_key))

    @property
    def run_key(self) -> str:
        """The key of the next run. Dagster launches a key once, so the key names the previous run."""
        return f"{self.debt_key}{_AFTER}{self.records[0].dagster_run.run_id[:8]}" if self.records else self.debt_key

    def reason_to_wait(self, instance: dg.DagsterInstance, now: datetime) -> str | None:
        """Say why no run is asked for now; None if one is.

        After a failure the sensor waits five minutes, and twice as long after each further one, up to six hours. It
        asks no more for what a person has cancelled, until the table changes.
        """
        if not self.records:
            return None
        newest, ended = self.records[0].dagster_run, self.records[0].update_timestamp
        run = f"run {newest.run_id[:8]}"
        if newest.status is dg.DagsterRunStatus.CANCELED:
            return f"{self.debt_key}: {run} was cancelled; start {newest.job_name} by hand, or wait for another version"
        if _has_failed(self.records[0]) and awaits_retry(instance, newest, ended, now):
            return f"{self.debt_key}: {run} failed, and Dagster may retry it"
        again = ended + wait_before_retry(sum(map(_has_failed, self.records)))
        if _has_failed(self.records[0]) and now < again:
            return (
                f"{self.debt_key}: {run} failed; the sensor asks for it again after {again.astimezone(UTC):%H:%M} UTC"
            )
        return None


def _has_failed(record: dg.RunRecord) -> bool:
    return record.dagster_run.status is dg.DagsterRunStatus.FAILURE


def _debt_key_of(run: dg.DagsterRun) -> str:
    """Return the debt that a run was asked for; "" if nothing but a person asked for it."""
    return run.tags.get(_RUN_KEY_TAG, "").partition(_AFTER)[0]
