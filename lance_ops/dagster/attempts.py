"""Name the work of a step, the same in each attempt, so that a later attempt finds the commit of an earlier one.

A step is attempted again by its own retries, and by a re-execution of a run that did not succeed: Dagster asks for one
when a run was killed, and people ask for one. A re-execution of a run that succeeded is new work, and so is one with
another configuration.
"""

from __future__ import annotations

import hashlib

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import find_token

__all__ = ["Attempt", "first_run"]


@dataclass(frozen=True)
class Attempt:
    """One attempt of a step's work: the token that its commit carries, and whether an earlier attempt may have it."""

    token: str
    is_repeated: bool

    @classmethod
    def of(cls, context: dg.OpExecutionContext, *parts: str) -> Attempt:
        """Return this attempt of a step's work; `parts` name what else tells it apart: its configuration, an output."""
        step = context.get_step_execution_context()
        first = first_run(context.instance, step.dagster_run)
        named = f"/{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}" if parts else ""
        is_repeated = context.retry_number > 0 or first != context.run_id
        return cls(f"dagster/{first}/{step.step.key}{named}", is_repeated)

    def committed_version(self, newest: Snapshot) -> int | None:
        """Return the version that an earlier attempt committed, if there was one; None in a first attempt.

        Open `newest` first: a commit whose outcome is unknown can still arrive, and then it is newer than `newest`, so
        that a commit planned on `newest` meets it.
        """
        return find_token(newest.store, newest.committer, self.token) if self.is_repeated else None


def first_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return the first of the runs that attempted the same work: up to it, each is a re-execution of a failed one."""
    first, parent = run.run_id, _parent_of(run)
    while parent is not None:
        before = instance.get_run_by_id(parent)
        if before is not None and before.status is dg.DagsterRunStatus.SUCCESS:
            break
        first, parent = parent, None if before is None else _parent_of(before)
    return first


def _parent_of(run: dg.DagsterRun) -> str | None:
    return run.parent_run_id or run.get_parent_run_id()
