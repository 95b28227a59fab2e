"""Merges and deletes by keys whose source is a DataFrame: its rows go from Spark's tasks to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import arrow_input
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.runners import Job, JobProgress
from lance_ops.spark import OnSpark, table
from tests.spark.rows_on_driver import refuse_rows_on_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass
class Steps:
    """The jobs that a runner reported, with their tasks."""

    seen: dict[str, int] = field(default_factory=dict)

    def __call__(self, progress: JobProgress) -> None:
        assert progress.job is not None
        self.seen[progress.job.verb] = progress.num_tasks


def test_a_data_frame_is_merged_and_its_keys_deleted_without_a_row_on_the_driver(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any) -> None:
        raise AssertionError("the source was read on the driver")

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(40), pa.float32()), 2)
    table = pa.table({"id": range(20), "vector": vectors, "name": [f"n{n}" for n in range(20)]})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=6)
    steps = Steps()
    on_spark = OnSpark(spark, on_progress=steps, least_bytes=0)
    frame = spark.range(15, 30, 1, 2).selectExpr("id AS ID", "array(float(id), float(-1)) AS vector")
    refuse_rows_on_driver(monkeypatch, frame)
    monkeypatch.setattr(arrow_input, "_stream", refused)
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    result = builder.execute(frame, runner=on_spark)
    deleted = dataset.delete_by_keys(spark.range(0, 40, 13).selectExpr("id", "'x' AS other"), "id", runner=on_spark)
    monkeypatch.undo()

    assert result == {"num_inserted_rows": 10, "num_updated_rows": 5, "num_deleted_rows": 0}
    assert deleted == {"num_deleted_rows": 3}
    assert dataset.version == 3
    assert steps.seen.keys() == {"append to", *(f"merge ({step}) into" for step in ("keys", "join", "rows"))}
    rows = {row["id"]: row for row in dataset.to_table().to_pylist()}
    assert sorted(rows) == [n for n in range(30) if n not in (0, 13, 26)]
    assert rows[16] == {"id": 16, "vector": [16.0, -1.0], "name": "n16"}
    assert rows[29] == {"id": 29, "vector": [29.0, -1.0], "name": None}
    assert rows[14]["vector"] == [28.0, 29.0]
    assert dataset.verify().ok
    assert not [path for path in Path(dataset_uri, "data").iterdir() if path.is_dir()]


def test_a_small_merge_runs_in_threads_of_the_driver(
    spark: SparkSession, dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    run = OnSpark._run_rdd

    def counted(on_spark: OnSpark, function: Any, tasks: Sequence[Any], job: Job | None, token: str) -> Any:
        ran.append(len(tasks))
        return run(on_spark, function, tasks, job, token)

    monkeypatch.setattr(OnSpark, "_run_rdd", counted)
    dataset = lance_ops.write_dataset(pa.table({"id": range(4000), "v": range(4000)}), dataset_uri)
    changes = lance_ops.write_dataset(pa.table({"id": range(3990, 4010), "v": [0] * 20}), str(tmp_path / "changes"))
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    steps = Steps()
    assert builder.execute(changes, runner=OnSpark(spark, on_progress=steps))["num_updated_rows"] == 10
    assert ran == []
    assert list(steps.seen.values()) == [1, 1, 2]
    assert dataset.count_rows("v = 0") == 21
    plan = by_tasks.plan_distributed_merge(dataset.snapshot, builder._request, by_tasks.SourceRows.of(changes.snapshot))
    assert plan.changed_bytes < plan.key_bytes  # so the step that reads all keys of the table is the largest
    builder.execute(changes, runner=OnSpark(spark, least_bytes=plan.source_bytes + plan.key_bytes))
    assert ran == [1]
    builder.execute(changes, runner=OnSpark(spark, least_bytes=0))
    assert len(ran) == 1 + 3


def test_a_data_frame_that_is_refused_leaves_the_table_as_it_was(
    spark: SparkSession, tasks: OnSpark, dataset_uri: str
) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(8), "v": range(8)}), dataset_uri)
    before = sorted(Path(dataset_uri).rglob("*"))
    builder = dataset.merge_insert("id").when_matched_update_all()
    with pytest.raises(InvalidInput, match="id = 3"):
        builder.execute(spark.sql("SELECT IF(id = 6, 3, id) AS id, id AS v FROM range(7)"), runner=tasks)
    with pytest.raises(SchemaMismatch, match="'w'"):
        builder.execute(spark.range(3).selectExpr("id", "id AS w"), runner=tasks)
    assert (sorted(Path(dataset_uri).rglob("*")), lance_ops.dataset(dataset_uri).version) == (before, 1)


@pytest.mark.parametrize(
    ("column", "key"),
    [
        ("day", "TIMESTAMP_NTZ '2026-01-01 13:00:00'"),
        ("day", "TIMESTAMP '2026-01-01 13:00:00'"),
        ("f", "0.1D"),
        ("d", "float(0.1)"),
    ],
)
def test_a_key_of_a_data_frame_that_a_cast_would_change_is_refused(
    spark: SparkSession, dataset_uri: str, column: str, key: str
) -> None:
    stored = {"day": [date(2026, 1, 1)], "f": pa.array([0.1], pa.float32()), "d": [Decimal("0.10")]}
    dataset = lance_ops.write_dataset(pa.table(stored), dataset_uri)
    keys = spark.sql(f"SELECT {key} AS {column.upper()}")
    with pytest.raises(SchemaMismatch, match=f"key '{column}' is .* may change values"):
        dataset.delete_by_keys(keys, column, runner=OnSpark(spark))
    with pytest.raises(SchemaMismatch, match=f"key '{column}' is .* may change values"):
        dataset.merge_insert(column).when_matched_delete().execute(keys, runner=OnSpark(spark))
    assert dataset.count_rows() == 1


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns")], ids=str)
def test_keys_of_nanoseconds_match_only_where_spark_cuts_none(
    spark: SparkSession, dataset_uri: str, kind: pa.DataType
) -> None:
    """Spark reads 3001 ns as 3 us, which match no row: a merge of the table with itself would insert each row again."""

    def rows(*nanoseconds: int) -> pa.Table:
        keys = pa.array(nanoseconds, pa.int64()).cast(kind)
        return pa.table({"k": pa.StructArray.from_arrays([keys], ["at"]), "at": keys, "x": [1] * len(keys)})

    dataset = lance_ops.write_dataset(rows(-1_000, 2_000, 4_000), dataset_uri)
    frame = table(spark, dataset_uri).select("AT", "k", "x").load().selectExpr("at AS At", "k", "x + 1 AS x")
    on_spark = OnSpark(spark)

    def merged(column: str) -> Any:
        upsert = dataset.merge_insert(column).when_matched_update_all().when_not_matched_insert_all()
        return upsert.execute(frame, runner=on_spark)

    assert merged("at") == {"num_inserted_rows": 0, "num_updated_rows": 3, "num_deleted_rows": 0}
    assert dataset.delete_by_keys(frame.limit(2), ["AT"], runner=on_spark) == {"num_deleted_rows": 2}
    dataset.insert(rows(3_001))
    before = dataset.version
    for column in ("at", "k.at"):
        with pytest.raises(UnsupportedFeature, match=f"key '{column}', whose values are not all whole microseconds"):
            merged(column)
        with pytest.raises(UnsupportedFeature, match=f"key '{column}', whose values are not all whole microseconds"):
            dataset.delete_by_keys(frame, column, runner=on_spark)
    assert lance_ops.dataset(dataset_uri).version == before
    assert dataset.delete_by_keys(frame, "x", runner=on_spark) == {"num_deleted_rows": 1}
    assert not [path for path in Path(dataset_uri, "data").iterdir() if path.is_dir()]


def test_nanoseconds_that_another_writer_adds_are_found_before_another_attempt(
    spark: SparkSession, dataset_uri: str
) -> None:
    def rows(*nanoseconds: int) -> pa.Table:
        return pa.table({"at": pa.array(nanoseconds, pa.timestamp("ns")), "x": [1] * len(nanoseconds)})

    class Overtaken(OnSpark):
        """Another writer changes a row of the merge and adds one while the first attempt runs its tasks."""

        def map(self, *args: Any, **kwargs: Any) -> Any:
            other = lance_ops.dataset(dataset_uri)
            if other.version == 1:
                other.update({"x": "7"})
                other.insert(rows(3_001))
            return super().map(*args, **kwargs)

    dataset = lance_ops.write_dataset(rows(2_000), dataset_uri)
    frame = spark.sql("SELECT timestamp_micros(id)::TIMESTAMP_NTZ AS at, 5L AS x FROM range(2, 4)")
    upsert = dataset.merge_insert("at").when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(UnsupportedFeature, match="key 'at', whose values are not all whole microseconds"):
        upsert.execute(frame, runner=Overtaken(spark))
    assert lance_ops.dataset(dataset_uri).count_rows() == 2


def test_rows_are_deleted_by_a_key_within_a_struct(spark: SparkSession, dataset_uri: str) -> None:
    rows = [{"id": at, "place": {"x": at, "y": "y"}} for at in range(6)]
    dataset = lance_ops.write_dataset(pa.Table.from_pylist(rows), dataset_uri, max_rows_per_file=2)
    keys = spark.sql("SELECT id, named_struct('y', 'other', 'x', id) AS PLACE FROM range(4, 9)")
    on_spark = OnSpark(spark, least_bytes=0)
    assert dataset.delete_by_keys(keys, "place.x", runner=on_spark) == {"num_deleted_rows": 2}
    assert dataset.delete_by_keys(
        keys.selectExpr("0L AS id", "named_struct('x', 0L) AS place"), ["id", "place.x"], runner=on_spark
    ) == {"num_deleted_rows": 1}
    assert dataset.to_table()["id"].to_pylist() == [1, 2, 3]
