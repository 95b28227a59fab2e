"""Run a command's tasks on Spark. Importing this module needs the `spark` extra."""

from __future__ import annotations

import warnings

from lance_ops.runners import ReportProgress, Runner
from lance_ops.spark import OnSpark, get_or_create

__all__ = ["start_spark"]


def start_spark(master: str, on_progress: ReportProgress | None) -> Runner:
    """Return a runner on this process's Spark session, and start one on the master if there is none.

    The session ends with the process. PySpark imports its own tests' tools when it starts one, and these warn of the
    version of pandas, which no command uses: the reader of a command is not told.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        session = get_or_create("lance-ops", master=master)
    return OnSpark(session, on_progress=on_progress)
