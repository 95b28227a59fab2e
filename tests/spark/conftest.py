"""A runner that sends even small work to the workers, and fails a test in which none of it went there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lance_ops.spark import OnSpark
from tests.spark.recorded_jobs import RecordedJobs, record_jobs, use_small_sizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> RecordedJobs:
    """The jobs of Spark's tasks in this test, in which small work runs in tasks, too."""
    use_small_sizes(monkeypatch)
    return record_jobs(monkeypatch)


@pytest.fixture
def tasks(spark: SparkSession, jobs: RecordedJobs) -> Iterator[OnSpark]:
    """A runner that gives all work to the workers of the shared session."""
    yield OnSpark(spark, least_bytes=0)
    assert jobs.descriptions, "no task ran on Spark"
