"""How many partitions a collected DataFrame had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from lance_ops.spark.arrow_function import map_in_arrow
from lance_ops.spark.running.partition_count import num_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

FRAMES = {
    "a range": "SELECT * FROM range(0, 10, 1, 3)",
    "no rows": "SELECT * FROM range(10) WHERE false",
    "rows in the plan": "SELECT * FROM VALUES (1L), (2L), (3L) AS t(id)",
    "small partitions that are joined": "SELECT id % 3 AS id, count(*) AS n FROM range(0, 10, 1, 3) GROUP BY 1",
    "a broadcast": "SELECT /*+ BROADCAST(b) */ a.id FROM range(9) AS a JOIN range(0, 9, 1, 2) AS b USING (id)",
    "a shuffle of both sides": "SELECT /*+ MERGE(b) */ a.id FROM range(9) AS a JOIN range(0, 9, 1, 2) AS b USING (id)",
    "an order": "SELECT * FROM range(0, 100, 1, 4) ORDER BY id DESC",
    "a limit": "SELECT * FROM range(0, 100, 1, 4) LIMIT 5",
    "an order with a limit": "SELECT * FROM range(0, 100, 1, 4) ORDER BY id DESC LIMIT 5",
    "a union": "SELECT * FROM range(0, 9, 1, 2) UNION ALL SELECT * FROM range(0, 9, 1, 3)",
    "a scalar subquery": "SELECT id + (SELECT max(id) FROM range(5)) AS id FROM range(0, 9, 1, 3)",
}


def number_of_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:  # Spark ends a worker whose input is left unread, and the next task waits for another one
        pass
    context = TaskContext.get()
    assert context is not None
    yield pa.record_batch({"number": pa.array([context.partitionId()], pa.int32())})


def num_jobs(spark: SparkSession) -> int:
    """Return how many jobs the session's scheduler has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def adaptive(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    spark.conf.set("spark.sql.adaptive.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("frame", FRAMES)
def test_the_count_is_that_of_the_run_and_runs_nothing(spark: SparkSession, frame: str) -> None:
    mapped = map_in_arrow(spark.sql(FRAMES[frame]), number_of_partition, "number int", "numbers")
    numbers = sorted(row["number"] for row in mapped.collect())
    jobs = num_jobs(spark)
    assert num_partitions(mapped) == len(numbers)
    assert num_jobs(spark) == jobs
    assert numbers == list(range(len(numbers)))


@pytest.mark.usefixtures("adaptive")
def test_a_recursion_has_no_count_and_does_not_run_again(spark: SparkSession) -> None:
    steps = "SELECT id FROM range(3) UNION ALL SELECT id + 3 FROM steps WHERE id < 9"
    mapped = map_in_arrow(
        spark.sql(f"WITH RECURSIVE steps(id) AS ({steps}) SELECT * FROM steps"),
        number_of_partition,
        "number int",
        "numbers",
    )
    assert mapped.collect()
    jobs = num_jobs(spark)
    assert num_partitions(mapped) is None
    assert num_jobs(spark) == jobs


def test_a_plan_that_spark_cannot_run_again_has_no_count(spark: SparkSession) -> None:
    """The rows are collected, so nothing is lost but a check."""
    ended = Mock(sparkSession=spark)
    for error in (Py4JError("Spark has forgotten the plan"), PySparkException("the files of the plan are gone")):
        ended._jdf.queryExecution.side_effect = error
        assert num_partitions(ended) is None


def test_the_count_leaves_the_metrics_of_an_observed_frame(spark: SparkSession) -> None:
    seen = Observation()
    mapped = map_in_arrow(
        spark.range(0, 10, 1, 3).observe(seen, F.count("*").alias("rows")), number_of_partition, "number int", "numbers"
    )
    mapped.collect()
    assert num_partitions(mapped) == 3
    assert seen.get == {"rows": 10}
