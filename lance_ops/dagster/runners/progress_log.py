"""Write how far a job's tasks are into a run's log."""

from __future__ import annotations

import logging
import math

from lance_ops.dagster.markdown import size_text
from lance_ops.runners import JobProgress, ReportProgress

__all__ = ["SECONDS_BETWEEN_LINES", "progress_in_log"]

SECONDS_BETWEEN_LINES = 10.0


def progress_in_log(log: logging.Logger) -> ReportProgress:
    """Return a report that logs a line every `SECONDS_BETWEEN_LINES`, and one when a job that took as long is done.

    A job of one task that takes long therefore has a line, too; a job that takes less time has none.
    """
    logged_at: dict[object, float] = {}
    reported: dict[object, tuple[int, float]] = {}

    def report(progress: JobProgress) -> None:
        job, is_done = progress.job, progress.num_done == progress.num_tasks
        num_done, seconds = reported.get(job, (0, 0.0))
        if progress.num_done < num_done or progress.seconds < seconds:  # an equal job has begun
            logged_at.pop(job, None)
        reported[job] = progress.num_done, progress.seconds
        before = logged_at.get(job, 0.0)
        is_late = progress.seconds - before >= SECONDS_BETWEEN_LINES
        if is_late or (is_done and SECONDS_BETWEEN_LINES <= before < math.inf):
            log.info(_last_line(progress) if is_done else _line(progress))
            logged_at[job] = math.inf if is_done else progress.seconds  # a runner may report the end more than once

    return report


def _line(progress: JobProgress) -> str:
    left = progress.seconds_left
    rest = "" if left is None else f", about {math.ceil(left)} s left"
    tasks = f"{progress.num_done} of {progress.num_tasks} tasks are done"
    return f"{progress.job or 'tasks'}: {tasks}{_amount(progress)}{rest}"


def _last_line(progress: JobProgress) -> str:
    tasks = "its task is done" if progress.num_tasks == 1 else f"all {progress.num_tasks} tasks are done"
    return f"{progress.job or 'tasks'}: {tasks} after {math.ceil(progress.seconds)} s{_amount(progress)}"


def _amount(progress: JobProgress) -> str:
    """Return how much is done, of how much, and how fast, where the job's unit is one that people count."""
    unit = progress.job.unit if progress.job is not None else None
    if unit is None or progress.done_weight is None or not progress.rate:
        return ""
    if unit == "bytes":
        return f", {size_text(progress.done_weight)} of {size_text(progress.weight)}, {size_text(int(progress.rate))}/s"
    return f", {progress.done_weight:,} of {progress.weight:,} {unit}, {progress.rate:,.0f}/s"
