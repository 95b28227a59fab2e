"""Run a command's tasks on Spark. Importing this module needs the `spark` extra."""

from __future__ import annotations

import logging
import warnings

from lance_ops.runners import ReportProgress, Runner
from lance_ops.spark import OnSpark, get_or_create

__all__ = ["start_spark"]


def start_spark(master: str, on_progress: ReportProgress | None) -> Runner:
    """Return a runner on this process's Spark session, and start one on the master if there is none.

    The session ends with the process. PySpark imports its own tests' tools when it starts one, and these warn of the
    version of pandas, which no command uses: the reader of a command is not told. Nor is he told which call of Py4J an
    interrupt has ended.
    """
    logging.getLogger().addFilter(_is_not_of_py4j)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        session = get_or_create("lance-ops", master=master)
    return OnSpark(session, on_progress=on_progress)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record is not one of Py4J's, which tells the root logger of calls that an interrupt ended."""
    return record.module != "java_gateway"
