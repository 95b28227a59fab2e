"""Run a command's tasks on Spark. Importing this module needs the `spark` extra."""

from __future__ import annotations

from lance_ops.runners import ReportProgress, Runner
from lance_ops.spark import OnSpark, get_or_create

__all__ = ["start_spark"]


def start_spark(master: str, on_progress: ReportProgress | None) -> Runner:
    """Return a runner on this process's Spark session, and start one on the master if there is none.

    The session ends with the process.
    """
    return OnSpark(get_or_create("lance-ops", master=master), on_progress=on_progress)
