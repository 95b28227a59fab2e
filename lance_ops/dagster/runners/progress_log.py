"""Write how far a job's tasks are into a run's log."""

from __future__ import annotations

import logging
import math

from lance_ops.dagster.markdown import size_text
from lance_ops.runners import JobProgress, ReportProgress

__all__ = ["SECONDS_BETWEEN_LINES", "progress_in_log"]

SECONDS_BETWEEN_LINES = 10.0


def progress_in_log(log: logging.Logger) -> ReportProgress:
    """Return a report that logs a line every `SECONDS_BETWEEN_LINES`; a job that takes less time has none."""
    logged_at: dict[object, float] = {}

    def report(progress: JobProgress) -> None:
        if progress.num_done == progress.num_tasks:
            logged_at.pop(progress.job, None)
        elif progress.seconds - logged_at.get(progress.job, 0.0) >= SECONDS_BETWEEN_LINES:
            logged_at[progress.job] = progress.seconds
            log.info(_line(progress))

    return report


def _line(progress: JobProgress) -> str:
    left = progress.seconds_left
    rest = "" if left is None else f", about {math.ceil(left)} s left"
    tasks = f"{progress.num_done} of {progress.num_tasks} tasks are done"
    return f"{progress.job or 'tasks'}: {tasks}{_amount(progress)}{rest}"


def _amount(progress: JobProgress) -> str:
    """Return how much is done, of how much, and how fast, where the job's unit is one that people count."""
    unit = progress.job.unit if progress.job is not None else None
    if unit is None or progress.done_weight is None or not progress.rate:
        return ""
    if unit == "bytes":
        return f", {size_text(progress.done_weight)} of {size_text(progress.weight)}, {size_text(int(progress.rate))}/s"
    return f", {progress.done_weight:,} of {progress.weight:,} {unit}, {progress.rate:,.0f}/s"
