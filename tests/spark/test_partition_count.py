"""How many partitions a collected DataFrame had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark import TaskContext

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
    context = TaskContext.get()
    assert context is not None
    yield pa.record_batch({"number": pa.array([context.partitionId()], pa.int32())})


def num_jobs(spark: SparkSession) -> int:
    """Return how many jobs the session's scheduler has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("frame", FRAMES)
def test_the_count_is_that_of_the_run_and_runs_nothing(spark: SparkSession, frame: str, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        mapped = map_in_arrow(spark.sql(FRAMES[frame]), number_of_partition, "number int", "numbers")
        numbers = sorted(row["number"] for row in mapped.collect())
        jobs = num_jobs(spark)
        assert num_partitions(mapped) == len(numbers)
        assert num_jobs(spark) == jobs
        assert numbers == list(range(len(numbers)))
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
