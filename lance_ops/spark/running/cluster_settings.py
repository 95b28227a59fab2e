"""Look up the settings of a cluster, also through Spark Connect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lance_ops.spark.session_kind import lacks_context

__all__ = ["Settings", "settings_of"]

Settings: TypeAlias = Callable[[str], str | None]
"""Returns the value of a setting by its name, or None if it is not set."""


def settings_of(session: SparkSession) -> Settings:
    """Return a function that looks up a setting of the session's cluster.

    A session of Spark Connect begins with the server's settings. Each look-up through it is a request. A setting that
    the server keeps to itself counts as one that is not set.
    """
    if not lacks_context(session):
        return session.sparkContext.getConf().get

    def look_up(name: str) -> str | None:
        try:
            return session.conf.get(name, None)
        except PySparkException:
            return None

    return look_up
