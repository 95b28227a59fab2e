"""Tell a session of Spark Connect, whose client reaches no JVM, from one that has a context."""

from __future__ import annotations

from pyspark.sql import SparkSession

__all__ = ["lacks_context"]


def lacks_context(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect. It imports nothing of Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")
