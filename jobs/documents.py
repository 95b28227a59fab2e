"""The Dagster code location of the example with documents.

python -m assets.documents.generated $LANCE_OPS_LANDING/documents
dagster dev -m jobs.documents
"""

from __future__ import annotations

import os

import dagster as dg

from assets.documents.definitions import definitions_of
from lance_ops.dagster import runners

__all__ = ["definitions"]


@dg.definitions
def definitions() -> dg.Definitions:
    """Return all definitions. With `SPARK_MASTER` tasks run on that cluster, else in threads."""
    master = os.environ.get("SPARK_MASTER")
    runner: runners.LanceRunner = runners.ThreadRunner() if master is None else runners.SparkRunner(master=master)
    location = dg.Definitions(executor=dg.in_process_executor)
    return dg.Definitions.merge(definitions_of(runner), location)
