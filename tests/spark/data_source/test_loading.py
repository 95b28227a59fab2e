"""`format("lance")` reads: rows and their order, versions, columns, filters, and wrong options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lance_ops.api import dataset, write_dataset
from tests.spark.data_source.frames import load, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_rows_arrive_in_the_tables_order_with_sparks_types(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers)
    assert frame.schema.simpleString() == "struct<x:bigint,name:string,v:array<float>>"
    assert frame.schema["v"].metadata == {"arrow.fixed-size-list.size": 2}
    assert [tuple(row) for row in frame.collect()] == [
        (i, f"n{i}" if i % 4 else None, [float(i), None] if i % 5 else None) for i in range(12)
    ]


def test_json_is_text_in_spark_and_stays_json_in_the_table(spark: SparkSession, dataset_uri: str) -> None:
    docs = pa.array(['{"a":[1,2]}', None, "3"], pa.json_())
    write_dataset(pa.table({"doc": docs, "l": pa.ListArray.from_arrays(pa.array([0, 1, 1, 3]), docs)}), dataset_uri)
    frame = load(spark, dataset_uri)
    assert frame.schema.simpleString() == "struct<doc:string,l:array<string>>"
    before = [tuple(row) for row in frame.collect()]
    assert before == [('{"a":[1,2]}', ['{"a":[1,2]}']), (None, []), ("3", [None, "3"])]
    frame.write.format("lance").mode("append").save(dataset_uri)
    frame.write.format("lance").mode("overwrite").save(dataset_uri)
    assert dataset(dataset_uri).schema.field("doc").type == pa.json_()
    assert [tuple(row) for row in load(spark, dataset_uri).collect()] == before


def test_fragments_are_shared_among_tasks(spark: SparkSession, numbers: str) -> None:
    assert load(spark, numbers).rdd.getNumPartitions() == 3
    assert load(spark, numbers, num_partitions=2).rdd.getNumPartitions() == 2


def test_a_schema_of_the_users_reads_only_its_columns_and_casts(spark: SparkSession, numbers: str) -> None:
    frame = spark.read.format("lance").schema("name string, x int").load(numbers)
    assert [tuple(row) for row in frame.limit(2).collect()] == [(None, 0), ("n1", 1)]


def test_columns_and_row_ids_by_option(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers, columns="name, x", with_row_id="true", with_row_address="true")
    assert frame.columns == ["name", "x", "_rowid", "_rowaddr"]
    assert values(frame, "_rowaddr") == [(i // 4 << 32) + i % 4 for i in range(12)]


def test_deleted_rows_do_not_arrive(spark: SparkSession, numbers: str) -> None:
    dataset(numbers).delete("x % 2 = 0")
    assert values(load(spark, numbers)) == [1, 3, 5, 7, 9, 11]


def test_a_version_or_a_tag_is_read(spark: SparkSession, numbers: str) -> None:
    opened = dataset(numbers)
    opened.tags.create("all", 1)
    opened.delete("x > 3")
    assert values(load(spark, numbers)) == [0, 1, 2, 3]
    assert load(spark, numbers, version=1).count() == 12
    assert load(spark, numbers, tag="all").count() == 12


def test_a_version_is_read_by_sparks_own_options(spark: SparkSession, numbers: str) -> None:
    opened = dataset(numbers)
    first = opened.versions()[0]["timestamp"]
    assert first is not None
    opened.delete("x > 3")
    assert load(spark, numbers, versionAsOf=1).count() == 12
    assert load(spark, numbers, timestampAsOf=first.isoformat()).count() == 12
    with pytest.raises(PySparkException, match="'versionAsOf' and 'timestampAsOf' both name a version"):
        load(spark, numbers, versionAsOf=1, timestampAsOf=first.isoformat())


def test_a_read_that_plans_no_task_gives_no_rows(spark: SparkSession, numbers: str) -> None:
    opened = dataset(numbers)
    opened.create_scalar_index("x", "BTREE")
    assert load(spark, numbers, filter="x = 99").collect() == []
    opened.delete("true")
    assert load(spark, numbers).count() == 0


def test_a_frame_stays_at_the_version_it_was_loaded_at(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers)
    dataset(numbers).delete("x > 3")
    assert frame.count() == 12
    assert frame.where("x >= 0").count() == 12
    assert load(spark, numbers).count() == 4


def test_a_filter_by_option_prunes_before_spark(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers, filter="x BETWEEN 5 AND 6 OR name = 'n1'")
    assert values(frame) == [1, 5, 6]
    # The same frame again, and with filters of the query's own, which Spark evaluates.
    assert frame.where("x > 5").count() == 1
    assert frame.count() == 3


def test_a_filter_answered_by_an_index_reads_only_the_fragments_it_names(spark: SparkSession, numbers: str) -> None:
    dataset(numbers).create_scalar_index("x", "BTREE")
    frame = load(spark, numbers, filter="x = 9")
    assert frame.rdd.getNumPartitions() == 1
    assert values(frame) == [9]


def test_two_filters_over_one_frame_do_not_mix(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers)
    both = frame.where("x = 1").union(frame.where("x = 2"))
    assert values(both) == [1, 2]
    assert frame.count() == 12


def rows_sent(spark: SparkSession, frame: DataFrame) -> int:
    """Count the rows that leave the scan: a filter that Spark still evaluates does not lower it."""
    scan = frame._jdf.queryExecution().executedPlan()
    while scan.children().size():
        scan = scan.children().apply(0)
    return int(scan.execute().count())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > 3 AND x <= 5 AND name IS NOT NULL", [5]),
        ("name LIKE 'n1%' AND x NOT IN (10)", [1, 11]),
    ],
)
def test_filters_are_pushed_down_if_requested(
    spark: SparkSession, numbers: str, condition: str, expected: list[int]
) -> None:
    pushed = load(spark, numbers, push_filters="true").where(condition)
    assert rows_sent(spark, pushed) == len(expected)
    assert values(load(spark, numbers, push_filters="true").where(condition)) == expected


def test_filters_that_cannot_be_pushed_are_left_to_spark(spark: SparkSession, numbers: str) -> None:
    frame = load(spark, numbers, push_filters="true").where("x % 5 = 0 AND x > 4")
    assert values(frame) == [5, 10]


def test_spark_still_mixes_the_filters_of_two_scans_over_one_frame(spark: SparkSession, numbers: str) -> None:
    # Why `push_filters` is off by default (see `PushingReader`). If this fails, Spark has fixed the bug: turn it on.
    frame = load(spark, numbers, push_filters="true")
    both = frame.where("x = 1").union(frame.where("x = 2"))
    assert values(both) != [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verison": 3}, "InvalidInput: format('lance') has no option 'verison'"),
        ({"version": 77}, "VersionNotFound"),
        ({"tag": "nope"}, "ReferenceNotFound"),
        ({"columns": "nope"}, "InvalidInput: no column 'nope'"),
    ],
)
def test_a_wrong_option_is_named_at_load(
    spark: SparkSession, numbers: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, numbers, **options)
    assert message in str(caught.value)


def test_a_missing_dataset_is_named_at_load(spark: SparkSession, dataset_uri: str) -> None:
    with pytest.raises(PySparkException, match="DatasetNotFound"):
        load(spark, dataset_uri)


def test_a_missing_column_of_the_users_schema_is_named(spark: SparkSession, numbers: str) -> None:
    with pytest.raises(PySparkException, match="no column 'nope'"):
        spark.read.format("lance").schema("nope int").load(numbers).collect()
