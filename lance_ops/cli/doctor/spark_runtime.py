"""Examine what Spark needs: a Java that runs it. Importing this module needs the `spark` extra."""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.cli.doctor.finding import Finding, Verdict
from lance_ops.core.errors import ConfigError
from lance_ops.spark import find_java

__all__ = ["examine_spark"]


def examine_spark() -> Iterator[Finding]:
    """Yield which Java Spark would run on."""
    try:
        yield Finding("java", Verdict.OK, str(find_java()))
    except ConfigError as error:
        what, _, remedy = str(error).rpartition(". ")
        yield Finding("java", Verdict.FAIL, what, remedy)
