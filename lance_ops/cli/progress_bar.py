"""Show a bar on the terminal while the tasks of a command run."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from lance_ops.cli.output import escaped
from lance_ops.runners import Job, JobProgress, ReportProgress

__all__ = ["progress_bar"]

_SECONDS_UNTIL_SHOWN = 1.0


def progress_bar() -> ReportProgress | None:
    """Return what shows progress until the command ends; None if stderr is no terminal.

    A job that is done within a second has no bar.
    """
    return _Bar().report if sys.stderr.isatty() else None


class _Bar:
    """One line for each job; they vanish when the command ends, and the result is printed on a clean terminal."""

    def __init__(self) -> None:
        rate = TextColumn("{task.fields[rate]}")
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn()
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._shown: dict[Job | None, TaskID] = {}
        if (context := click.get_current_context(silent=True)) is not None:
            context.call_on_close(self._progress.stop)

    def report(self, progress: JobProgress) -> None:
        if progress.seconds < _SECONDS_UNTIL_SHOWN and progress.job not in self._shown:
            return
        if progress.job not in self._shown:
            self._progress.start()
            text = escaped(str(progress.job or "tasks"))
            self._shown[progress.job] = self._progress.add_task(text, total=progress.num_tasks, rate="")
        self._progress.update(
            self._shown[progress.job], completed=progress.num_done, total=progress.num_tasks, rate=_rate(progress)
        )


def _rate(progress: JobProgress) -> str:
    """Return the bytes or rows a second, where the job counts them."""
    unit = progress.job.unit if progress.job is not None else None
    if unit is None or progress.rate is None:
        return ""
    return f"{decimal(int(progress.rate))}/s" if unit == "bytes" else f"{progress.rate:,.0f} {unit}/s"
