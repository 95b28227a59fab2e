"""Tell a session of Spark Connect, whose client reaches no JVM, from one that has a context, and name its server."""

from __future__ import annotations

from pyspark.sql import SparkSession

__all__ = ["lacks_context", "server_of"]


def lacks_context(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect. It imports nothing of Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def server_of(session: SparkSession) -> str | None:
    """Return host and port of the server of a session of Spark Connect; None if its channel is the user's own.

    PySpark shows the host alone, so this reads a private part of its client.
    """
    return getattr(session.client._builder, "endpoint", None)
