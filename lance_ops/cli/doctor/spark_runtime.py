"""Examine what Spark needs: a Java that runs it. Importing this module needs the `spark` extra."""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.cli.doctor.diagnosis import Diagnosis, Verdict
from lance_ops.core.errors import ConfigError
from lance_ops.spark import find_java
from lance_ops.spark.java import archive_options

__all__ = ["examine_spark"]


def examine_spark() -> Iterator[Diagnosis]:
    """Yield which Java Spark would run on, and whether local sessions start from an archive of Spark's classes."""
    try:
        home = find_java()
    except ConfigError as error:
        what, _, remedy = str(error).rpartition(". ")
        yield Diagnosis("java", Verdict.FAIL, what, remedy)
        return
    starts = "a session on this machine takes twice the time to start, because Spark's classes are not archived"
    remedy = "run `python -m lance_ops.spark.warm` when an image is built"
    if archive_options(home) is not None:
        starts, remedy = "sessions on this machine start from an archive of Spark's classes", ""
    yield Diagnosis("java", Verdict.OK, f"{home}; {starts}", remedy)
