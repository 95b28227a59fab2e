"""Progress of jobs that begin with the rows of a DataFrame: writes, stages of merges, values by row, changes by SQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.dagster.io.stored_dataset import StoredDataset
from lance_ops.runners import InThreads, JobProgress
from lance_ops.spark import OnSpark, sql, table, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.7)
        yield batch


def slow_numbers(spark: SparkSession, partitions: int) -> DataFrame:
    return spark.range(0, 40, 1, partitions).withColumnRenamed("id", "x").mapInArrow(slowly, "x long")


def told(seen: list[JobProgress]) -> dict[str, tuple[int, int]]:
    """Return how many tasks were done of how many, as each job told last."""
    return {str(each.job): (each.num_done, each.num_tasks) for each in seen}


def test_a_write_tells_its_tasks_while_they_run(spark: SparkSession, dataset_uri: str) -> None:
    seen: list[JobProgress] = []
    write(slow_numbers(spark, 6), dataset_uri, on_progress=seen.append)
    counts = [each.num_done for each in seen]
    assert counts == sorted(counts) and any(0 < count < 6 for count in counts)
    assert told(seen) == {"append to data": (6, 6)}


def test_a_job_is_not_done_before_its_last_stage(spark: SparkSession, dataset_uri: str) -> None:
    seen: list[JobProgress] = []
    counted = slow_numbers(spark, 4).groupBy("x").count().mapInArrow(slowly, "x long, count long")
    write(counted, dataset_uri, on_progress=seen.append)
    assert all(each.num_done < each.num_tasks for each in seen[:-1])
    assert any(each.num_done >= 4 for each in seen[:-1])
    assert seen[-1].num_done == seen[-1].num_tasks >= 5


def test_other_jobs_of_the_caller_s_group_are_not_counted(spark: SparkSession, dataset_uri: str) -> None:
    seen: list[JobProgress] = []
    context = spark.sparkContext
    context.setJobGroup("nightly", "all of tonight")
    try:
        context.parallelize(range(50), 50).count()
        write(slow_numbers(spark, 3), dataset_uri, on_progress=seen.append)
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]  # which unsets it
    assert told(seen) == {"append to data": (3, 3)}


def test_changes_by_sql_tell_their_tasks(spark: SparkSession, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"x": range(8), "y": range(8)}), dataset_uri, max_rows_per_file=4)
    seen: list[JobProgress] = []
    runner, name = OnSpark(spark, on_progress=seen.append), f"lance.`{dataset_uri}`"
    for statement in (
        f"UPDATE {name} SET y = y + abs(x) WHERE x > 5",
        f"DELETE FROM {name} WHERE x + 1 = 1",
        f"MERGE INTO {name} AS t USING (SELECT 7L AS i) AS s ON t.x = s.i WHEN MATCHED THEN UPDATE SET y = i + t.y",
        f"INSERT INTO {name} SELECT id, id FROM range(100, 103)",
    ):
        sql(spark, statement, runner=runner).collect()
    found = told(seen)
    assert list(found) == ["update data v1", "delete data v2", "merge into data v3", "append to data v4"]
    assert all(done == known for done, known in found.values())


def test_an_insert_tells_it_to_a_runner_of_threads_too(spark: SparkSession, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"x": range(8)}), dataset_uri)
    seen: list[JobProgress] = []
    statement = f"INSERT INTO lance.`{dataset_uri}` SELECT id FROM range(3)"
    sql(spark, statement, runner=InThreads(on_progress=seen.append)).collect()
    assert list(told(seen)) == ["append to data v1"]


def test_stages_of_a_merge_and_of_values_by_row_tell_their_tasks(spark: SparkSession, dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"x": range(8), "y": range(8)}), dataset_uri, max_rows_per_file=4)
    seen: list[JobProgress] = []
    runner = OnSpark(spark, on_progress=seen.append)
    changes = spark.range(6, 10).selectExpr("id AS x", "-id AS y")
    made.merge_insert("x").when_matched_update_all().when_not_matched_insert_all().execute(changes, runner=runner)
    assert any(job.startswith("append to ") for job in told(seen))
    seen.clear()
    values = table(spark, dataset_uri).select("_rowaddr", "x").load().selectExpr("_rowaddr", "x * 2 AS double")
    lance_ops.dataset(dataset_uri).add_columns(values, runner=runner)
    assert any(job.startswith("append to ") for job in told(seen))


def test_a_frame_that_dagster_stores_tells_its_tasks(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[JobProgress] = []
    stored = StoredDataset(str(tmp_path / "data.lance"), on_progress=seen.append)
    stored.write(spark.range(5), "append")
    stored.write(spark.range(3, 8), "upsert", ["id"])
    assert "append to data" in told(seen)
    assert any(job.startswith("merge") for job in told(seen))
