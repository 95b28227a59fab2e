"""Ask a session what it is: of Spark Connect, whose client reaches no JVM, or with a context; and how it is set."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lance_ops.core.errors import InvalidInput

__all__ = ["check_is_running", "is_switched_on", "lacks_context", "server_of"]


def check_is_running(session: SparkSession) -> None:
    """Raise `InvalidInput` for a session that was stopped; one of Spark Connect is not asked."""
    if not lacks_context(session) and session.sparkContext._jsc is None:
        raise InvalidInput("the Spark session was stopped: start another one, as lance_ops.spark.get_or_create() does")


def is_switched_on(session: SparkSession, setting: str) -> bool:
    """Return whether a setting of two values, which Spark knows, is true; it takes `True` and `TRUE` as well."""
    return (session.conf.get(setting) or "false").strip().lower() == "true"


def lacks_context(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect. It imports nothing of Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def server_of(session: SparkSession) -> str | None:
    """Return host and port of the server of a session of Spark Connect; None if its channel is the user's own.

    PySpark shows the host alone, so this reads a private part of its client.
    """
    return getattr(session.client._builder, "endpoint", None)
