"""Plan a compaction, run its tasks and commit them, in one commit or in several while the work goes on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lance_ops.core.errors import RetryableConflict
from lance_ops.core.records import dataclass
from lance_ops.maintenance.compaction.clustering import cluster_files
from lance_ops.maintenance.compaction.compaction_plan import (
    CompactionOptions,
    CompactionPlan,
    RewriteTask,
    plan_compaction,
)
from lance_ops.maintenance.compaction.rewriting import (
    CompactionMetrics,
    RewriteOutcome,
    commit_rewrites,
    discard_rewrite,
    execute_rewrite,
)
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import remove_files_of_job
from lance_ops.writing import CONFLICT_RETRIES, retry_conflicts

__all__ = ["compact_files"]


def compact_files(
    snapshot: Snapshot,
    options: CompactionOptions | None = None,
    runner: Runner | None = None,
    *,
    conflict_retries: int = CONFLICT_RETRIES,
) -> tuple[Snapshot, CompactionMetrics]:
    """Plan on the snapshot, rewrite and commit; after a conflict with concurrent traffic, plan on the newest version.

    With several commits, a new plan holds only the groups that a conflict lost. An error of a task stops the compaction
    and leaves the commits before it. The last version is returned.

    Raises `TooManyConcurrentWriters` when every attempt met a conflict, `IncompatibleTransaction` when the table was
    overwritten, `UnsupportedFeature` as `plan_compaction` does.
    """
    work = _Compacting(snapshot, options or CompactionOptions(), runner or InThreads())
    return retry_conflicts(snapshot, work.attempt, conflict_retries), work.metrics


class _Compacting:
    """What the attempts of one compaction have done so far."""

    def __init__(self, first: Snapshot, options: CompactionOptions, runner: Runner) -> None:
        self._first = first
        self._options = options
        self._runner = runner
        self._deadline = None if options.max_seconds is None else time.time() + options.max_seconds
        self.metrics = CompactionMetrics()

    def attempt(self, current: Snapshot) -> Snapshot:
        """Rewrite what a plan on this version holds, and keep the version until it is committed."""
        if self._options.cluster_by:
            with pinned_if_at_risk(current, self._first):
                made, self.metrics = cluster_files(current, self._options, self._runner)
            return made
        plan = plan_compaction(current, self._options)
        if not plan.tasks:
            return current
        with pinned_if_at_risk(current, self._first):
            return self._rewrite(current, plan)

    def _rewrite(self, current: Snapshot, plan: CompactionPlan) -> Snapshot:
        """Rewrite and commit; raise the last conflict if there was one and time is left."""
        made = current
        lost: RetryableConflict | None = None
        remove = partial(remove_files_of_job, current.store)
        for tasks in plan.tasks_by_commit():
            if self._is_late and tasks[0] is not plan.tasks[0]:
                break
            timed = [_TimedTask(task, None if task is plan.tasks[0] else self._deadline) for task in tasks]
            outcomes = self._runner.map(
                _execute_in_time,
                timed,
                plan.job_of(tasks).with_removal(remove),
                lambda outcome: _discard(current, outcome),
            )
            rewrites = [outcome for outcome in outcomes if outcome is not None]
            if not rewrites:
                continue
            try:
                made, metrics = commit_rewrites(current, rewrites, runner=self._runner)
            except RetryableConflict as conflict:
                lost = conflict
            else:
                self._count(current, rewrites, metrics)
        if lost is not None and not (self._is_late and self.metrics.fragments_removed):
            raise lost
        return made

    @property
    def _is_late(self) -> bool:
        return self._deadline is not None and time.time() >= self._deadline

    def _count(self, snapshot: Snapshot, rewrites: Sequence[RewriteOutcome], metrics: CompactionMetrics) -> None:
        """Add what was done, and take it from what a later plan may read."""
        self.metrics += metrics
        old = [fragment for rewrite in rewrites for fragment in rewrite.old_fragments]
        rows = sum(snapshot.num_live_rows(fragment) for fragment in old)
        size_bytes = sum(file.file_size_bytes for fragment in old for file in fragment.files)
        left = (
            _less(self._options.max_source_fragments, len(old)),
            _less(self._options.max_source_rows, rows),
            _less(self._options.max_source_bytes, size_bytes),
        )
        if 0 in left:  # no more may be rewritten
            self._options = replace(self._options, only_fragment_ids=frozenset())
        else:
            self._options = replace(
                self._options, max_source_fragments=left[0], max_source_rows=left[1], max_source_bytes=left[2]
            )


@dataclass(frozen=True)
class _TimedTask:
    """A task, and the time (seconds since 1970) after which it does not begin."""

    task: RewriteTask
    begins_before: float | None


def _execute_in_time(timed: _TimedTask) -> RewriteOutcome | None:
    """Rewrite the task's rows, or return None if it is too late to begin."""
    if timed.begins_before is not None and time.time() >= timed.begins_before:
        return None
    return execute_rewrite(timed.task)


def _discard(snapshot: Snapshot, outcome: RewriteOutcome | None) -> None:
    if outcome is not None:
        discard_rewrite(snapshot.store, outcome)


def _less(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(limit - used, 0)
