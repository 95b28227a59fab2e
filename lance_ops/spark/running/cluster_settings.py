"""Look up the settings of a cluster, also through Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lance_ops.spark.session_kind import lacks_context

__all__ = ["Settings", "seconds_until_workers_end", "settings_of"]

_SECONDS = {"us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SECONDS_BETWEEN_LOOKS = 2.0
"""How often Spark looks whether the task of a Python worker was killed."""
_SECONDS_TO_KILL = 1.0

Settings: TypeAlias = Callable[[str], str | None]
"""Returns the value of a setting by its name, or None if it is not set."""

_OF_CONTEXTS: WeakKeyDictionary[SparkContext, dict[str, str]] = WeakKeyDictionary()


def settings_of(session: SparkSession) -> Settings:
    """Return a function that looks up a setting of the session's cluster.

    The settings of a context do not change. To copy them takes hundreds of calls of the JVM, so this reads them once.
    A session of Spark Connect begins with the server's settings. Each look-up through it is a request. A setting that
    the server keeps to itself counts as one that is not set.
    """
    if not lacks_context(session):
        context = session.sparkContext
        if (known := _OF_CONTEXTS.get(context)) is None:
            known = _OF_CONTEXTS[context] = dict(context.getConf().getAll())
        return known.get

    def look_up(name: str) -> str | None:
        try:
            return session.conf.get(name, None)
        except PySparkException:
            return None

    return look_up


def seconds_until_workers_end(settings: Settings) -> float:
    """Return how many seconds the Python worker of a killed task may live.

    The worker gets no notice. It goes on until Spark has noticed the kill and `spark.python.task.killTimeout` has
    passed.
    """
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", (settings("spark.python.task.killTimeout") or "2s").strip().lower())
    patience = int(found[1]) * _SECONDS.get(found[2], 1.0) if found else 2.0
    return _SECONDS_BETWEEN_LOOKS + patience + _SECONDS_TO_KILL
