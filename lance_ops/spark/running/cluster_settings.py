"""Look up the settings of a cluster, through Spark Connect, too."""

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
    """Return what looks up a setting of the session's cluster.

    Sessions of a server of Spark Connect begin with all settings of the server. Each look-up there is a request. A
    setting that the server keeps to itself counts as one that is not set.
    """
    if not lacks_context(session):
        return session.sparkContext.getConf().get

    def look_up(name: str) -> str | None:
        try:
            return session.conf.get(name, None)
        except PySparkException:
            return None

    return look_up
