"""`format("lance")` writes: one version a write, the table's types, batches, failures, and what Spark refuses."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lance_ops.api import dataset, write_dataset
from lance_ops.spark import get_or_create
from tests.spark.data_source.frames import data_files, frame_of, load, named_files, save, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_write_is_one_version_however_many_tasks(spark: SparkSession, dataset_uri: str) -> None:
    save(frame_of(spark, 10, partitions=3), dataset_uri)
    opened = dataset(dataset_uri)
    assert (opened.version, len(opened.get_fragments())) == (1, 3)
    save(frame_of(spark, 5, start=10), dataset_uri)
    opened = dataset(dataset_uri)
    assert (opened.version, opened.count_rows()) == (2, 15)
    assert opened.to_table().column("x").to_pylist() == list(range(15))


def test_overwrite_replaces_rows_and_keeps_the_version_before(spark: SparkSession, dataset_uri: str) -> None:
    save(frame_of(spark, 10), dataset_uri)
    save(frame_of(spark, 3), dataset_uri, "overwrite")
    assert load(spark, dataset_uri).count() == 3
    assert load(spark, dataset_uri, version=1).count() == 10


def test_rows_beyond_the_limit_go_to_another_fragment(spark: SparkSession, dataset_uri: str) -> None:
    save(frame_of(spark, 10, partitions=1), dataset_uri, max_rows_per_file=4)
    assert [f.count_rows() for f in dataset(dataset_uri).get_fragments()] == [4, 4, 2]


def test_writing_no_rows_creates_a_table_but_no_second_version(spark: SparkSession, dataset_uri: str) -> None:
    save(frame_of(spark, 0), dataset_uri)
    save(frame_of(spark, 0), dataset_uri)
    assert (dataset(dataset_uri).version, load(spark, dataset_uri).columns) == (1, ["x", "name"])


def test_hints_make_fixed_size_lists_and_half_floats(spark: SparkSession, dataset_uri: str) -> None:
    frame = spark.createDataFrame([([1.0, 2.0], 1.5), (None, None)], "v array<float>, h float").withMetadata(
        "v", {"arrow.fixed-size-list.size": 2}
    )
    save(frame, dataset_uri, **{"h.arrow.float16": "true"})
    opened = dataset(dataset_uri)
    assert opened.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert opened.schema.field("h").type == pa.float16()
    assert opened.to_table().column("v").to_pylist() == [[1.0, 2.0], None]


def test_the_tables_types_are_kept_on_append_and_overwrite(spark: SparkSession, dataset_uri: str) -> None:
    schema = pa.schema(
        [
            pa.field("small", pa.uint8()),
            pa.field("v", pa.list_(pa.float32(), 2), metadata={"why": "embedding"}),
            pa.field("text", pa.large_string()),
        ]
    )
    write_dataset(pa.table({"small": [1], "v": [[1.0, 2.0]], "text": ["a"]}, schema=schema), dataset_uri)
    frame = spark.createDataFrame(
        [([3.0, 4.0], 200, "b"), (None, None, None)], "v array<float>, small int, text string"
    )
    save(frame.selectExpr("v", "cast(small as smallint) small", "text"), dataset_uri)
    assert dataset(dataset_uri).to_table().to_pylist() == [
        {"small": 1, "v": [1.0, 2.0], "text": "a"},
        {"small": 200, "v": [3.0, 4.0], "text": "b"},
        {"small": None, "v": None, "text": None},
    ]
    save(load(spark, dataset_uri).where("small = 200"), dataset_uri, "overwrite")
    opened = dataset(dataset_uri)
    assert opened.schema.equals(schema, check_metadata=True)
    assert opened.to_table().to_pylist() == [{"small": 200, "v": [3.0, 4.0], "text": "b"}]


def test_a_missing_nullable_column_is_null_and_an_extra_one_is_refused(spark: SparkSession, numbers: str) -> None:
    save(spark.range(100, 101).selectExpr("id as x"), numbers)
    assert values(load(spark, numbers).where("x = 100"), "name") == [None]
    with pytest.raises(PySparkException, match="SchemaMismatch: column 'y' is not in the table"):
        save(spark.range(1).selectExpr("id as y"), numbers)


def test_a_batch_is_written_once(spark: SparkSession, dataset_uri: str) -> None:
    save(frame_of(spark, 2), dataset_uri)
    for _ in range(2):
        save(frame_of(spark, 3), dataset_uri, batch="2013-01-01")
    assert dataset(dataset_uri).count_rows() == 5
    save(frame_of(spark, 3), dataset_uri, batch="2013-01-02")
    assert dataset(dataset_uri).count_rows() == 8
    assert data_files(dataset_uri) == named_files(dataset_uri)


def test_the_write_names_its_batch_in_the_transaction(spark: SparkSession, dataset_uri: str) -> None:
    save(frame_of(spark, 2), dataset_uri, batch="day 1")
    transaction = dataset(dataset_uri).read_transaction(1)
    assert transaction is not None and transaction.transaction_properties["lance_ops.batch.day 1"] == "day 1"


def test_a_failed_task_leaves_the_table_as_it_was(spark: SparkSession, numbers: str) -> None:
    failing = spark.range(0, 10, numPartitions=2).selectExpr("if(id = 9, raise_error('boom'), id) AS x")
    before = data_files(numbers)
    with pytest.raises(PySparkException, match="boom"):
        save(failing, numbers)
    opened = dataset(numbers)
    assert (opened.version, opened.count_rows()) == (1, 12)
    # Spark aborts the write without waiting for the other task. A file of that task may stay until a clean-up.
    assert named_files(numbers) == before
    assert len(data_files(numbers) - before) <= 1


def test_values_that_do_not_fit_fail_by_the_name_of_their_column(spark: SparkSession, dataset_uri: str) -> None:
    write_dataset(pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}), dataset_uri)
    with pytest.raises(PySparkException, match="SchemaMismatch: column 'v'"):
        save(spark.createDataFrame([([1.0, 2.0, 3.0],)], "v array<float>"), dataset_uri)
    assert data_files(dataset_uri) == named_files(dataset_uri)


def test_every_spark_type_round_trips(spark: SparkSession, dataset_uri: str) -> None:
    frame = spark.sql(
        """
        SELECT true AS b, 1Y AS i8, 2S AS i16, 3 AS i32, 4L AS i64, 1.5F AS f32, 2.5D AS f64, 1.25BD AS dec,
               'text' AS s, X'00ff' AS bin, DATE '2020-02-29' AS d, TIMESTAMP '2020-01-01 12:00:00.123456' AS ts,
               TIMESTAMP_NTZ '2020-01-01 12:00:00' AS ntz, array(1, null) AS l,
               named_struct('a', 1, 'b', array('x')) AS st
        UNION ALL
        SELECT null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
        """
    )
    save(frame, dataset_uri)
    back = load(spark, dataset_uri)
    assert back.schema.simpleString() == frame.schema.simpleString()
    assert {tuple(row) for row in map(str, back.collect())} == {tuple(row) for row in map(str, frame.collect())}


def test_modes_and_layouts_that_spark_refuses_write_nothing(spark: SparkSession, dataset_uri: str) -> None:
    writer = frame_of(spark, 2).write.format("lance")
    for mode in ("errorifexists", "ignore"):
        with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.mode(mode).save(dataset_uri)
    with pytest.raises(PySparkException, match="partitioning"):
        writer.mode("append").partitionBy("x").save(dataset_uri)
    assert not Path(dataset_uri).exists()


def test_a_thread_writes_after_it_asked_for_the_session(spark: SparkSession, dataset_uri: str) -> None:
    failures: list[BaseException] = []

    def write() -> None:
        try:
            save(frame_of(get_or_create(), 3), dataset_uri)
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert failures == []
    assert dataset(dataset_uri).count_rows() == 3


def test_rows_that_match_are_replaced_by_option(spark: SparkSession, numbers: str) -> None:
    save(frame_of(spark, 2, start=9), numbers, "overwrite", replaceWhere="x >= 8")
    assert sorted(values(load(spark, numbers))) == [*range(8), 9, 10]
    with pytest.raises(PySparkException, match="1 rows to write do not match 'x > 9'"):
        save(frame_of(spark, 2, start=9), numbers, "overwrite", replaceWhere="x > 9")
    assert dataset(numbers).version == 2


def test_a_relative_path_begins_where_that_of_parquet_files_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.sparkContext._jvm is not None
    start = spark.sparkContext._jvm.java.lang.System.getProperty("user.dir")
    monkeypatch.chdir(tmp_path)
    for name in ("lance", "parquet"):
        path = os.path.relpath(tmp_path / name, start)
        spark.range(3).write.format(name).mode("append").save(path)
        assert (tmp_path / name).is_dir()
        assert spark.read.format(name).load(path).count() == 3
