"""The Spark session this library works in: made when first asked for, shared by everything in the process.

Starting one takes 6 to 10 s, and its first Python job 2 to 5 s more; a session that is already there is used as it is,
with the SQL settings below applied to it.

On a cluster the executors need this package and its dependencies: install it there, or ship an environment with
`spark.archives`. (`spark.submit.pyFiles` with the wheel is enough for the package itself, which is pure Python.)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from lance_ops.spark.java import use_java

__all__ = ["SETTINGS", "get_or_create"]

SETTINGS: Mapping[str, str] = {
    # Timestamps travel as UTC; a session in another zone would show the same instants under other wall times.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A compressed Arrow stream hung mapInArrow; the transport is a local pipe anyway.
    "spark.sql.execution.arrow.compression.codec": "none",
    # With this off, Spark fails every query on a source that can take filters.
    "spark.sql.python.filterPushdown.enabled": "true",
    # A second attempt at a task writes a second set of files: harmless, for only one is committed, but waste.
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
}


def get_or_create(
    app_name: str = "lance-ops",
    *,
    master: str | None = None,
    ui: bool = False,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the process's session; start one if there is none.

    `master` defaults to what `spark-submit` gave, and to all cores of this machine where nothing did. `config` goes on
    top of `SETTINGS`. Sets JAVA_HOME and, for a local master, PYSPARK_PYTHON, which the JVM to be started reads.
    Raises `ConfigError` when no Java is found.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if SparkSession.getActiveSession() is None and not submitted:
        use_java()
    if master is None and not submitted:
        master = "local[*]"
    settings = {**SETTINGS, "spark.app.name": app_name, "spark.ui.enabled": str(ui).lower()}
    if master is not None:
        settings["spark.master"] = master
        if master.startswith("local"):
            # The JVM would start whatever `python3` is on PATH, which need not have this package.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return SparkSession.builder.config(map={**settings, **(config or {})}).getOrCreate()
