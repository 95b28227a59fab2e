"""Look up the settings of a cluster, through Spark Connect, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import SparkSession

from lance_ops.spark.session_kind import lacks_context

__all__ = ["Settings", "settings_of"]

Settings: TypeAlias = Callable[[str], str | None]
"""Returns the value of a setting by its name, or None if it is not set."""


def settings_of(session: SparkSession) -> Settings:
    """Return what looks up a setting of the session's cluster.

    Sessions of a server of Spark Connect begin with all settings of the server. Each look-up there is a request.
    """
    if lacks_context(session):
        return lambda name: session.conf.get(name, None)
    return session.sparkContext.getConf().get
