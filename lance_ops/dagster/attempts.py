"""Name the work of a step, the same in each attempt, so that a later attempt finds what an earlier one has done.

A step is attempted again by its own retries, and by a re-execution of a run that did not succeed: Dagster asks for one
when a run was killed, and people ask for one. A re-execution of a run that succeeded is new work, and so is one with
another configuration. So is one after a restore or an overwrite that took the work of the earlier attempt out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import find_token

__all__ = ["Attempt", "first_run"]


@dataclass(frozen=True)
class Attempt:
    """One attempt of a step's work: the token that its commit carries, and whether an earlier attempt may have it.

    `attempted_since` is when the first earlier attempt began that may have done the work: it was killed, or met an
    error that passes. One that failed for good has done nothing. None if there is no such attempt.
    """

    token: str
    is_repeated: bool
    attempted_since: datetime | None = None

    @classmethod
    def of(cls, context: dg.OpExecutionContext, *parts: str) -> Attempt:
        """Return this attempt of a step's work; `parts` name what else tells it apart: its configuration, an output."""
        step = context.get_step_execution_context()
        runs = _runs_of_work(context.instance, step.dagster_run)
        named = f"/{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}" if parts else ""
        key, is_retry = step.step.key, context.retry_number > 0
        earlier = runs if is_retry else runs[:-1]
        return cls(f"dagster/{runs[0]}/{key}{named}", bool(earlier), _unknown_since(context.instance, earlier, key))

    def committed_version(self, newest: Snapshot) -> int | None:
        """Return the version that an earlier attempt committed, None without one or in a first attempt.

        A version that a restore or an overwrite took out of the table since does not count: its work is done again.
        Open `newest` first: a commit whose outcome is unknown can still arrive, and then it is newer than `newest`, so
        that a commit planned on `newest` meets it.
        """
        return find_token(newest.store, newest.committer, self.token) if self.is_repeated else None


def first_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return the id of the first of the runs that attempted the same work, which may be the run itself."""
    return _runs_of_work(instance, run)[0]


def _runs_of_work(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    """Return the ids of the runs that attempted the work of a run, the first one first, and the run itself last.

    Each of the others is in place of one that did not succeed.
    """
    runs, parent = [run.run_id], _parent_of(run)
    while parent is not None:
        before = instance.get_run_by_id(parent)
        if before is not None and before.status is dg.DagsterRunStatus.SUCCESS:
            break
        runs.append(parent)
        parent = None if before is None else _parent_of(before)
    return runs[::-1]


def _unknown_since(instance: dg.DagsterInstance, runs: Sequence[str], step_key: str) -> datetime | None:
    """Return when the first of the runs began in which the step did not fail for good; None if there is none."""
    for run_id in runs:
        record = instance.get_run_record_by_id(run_id)
        if record is not None and record.start_time is not None and not _failed_for_good(instance, run_id, step_key):
            return datetime.fromtimestamp(record.start_time, UTC)
    return None


def _failed_for_good(instance: dg.DagsterInstance, run_id: str, step_key: str) -> bool:
    """Return whether a step ended with `dg.Failure`, which `retrying` raises of errors that do not pass."""
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records:
        event = record.event_log_entry.dagster_event
        if event is not None and event.step_key == step_key and event.step_failure_data.user_failure_data is not None:
            return True
    return False


def _parent_of(run: dg.DagsterRun) -> str | None:
    return run.parent_run_id or run.get_parent_run_id()
