"""`format("lance")` end to end: rows in and out, versions, filters, failures."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, ReferenceNotFound, VersionNotFound
from lance_ops.spark import create_view, get_or_create, private_format, register_functions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def numbers(dataset_uri: str) -> str:
    """Twelve rows in three fragments. `x` is 0 to 11; `v` holds two floats."""
    table = pa.table(
        {
            "x": pa.array(range(12), pa.int64()),
            "name": [f"n{i}" if i % 4 else None for i in range(12)],
            "v": pa.array([[float(i), None] if i % 5 else None for i in range(12)], pa.list_(pa.float32(), 2)),
        }
    )
    write_dataset(table, dataset_uri, max_rows_per_file=4)
    return dataset_uri


def load(spark: SparkSession, uri: str, **options: Any) -> DataFrame:
    return spark.read.format("lance").options(**options).load(uri)


def values(frame: DataFrame, column: str = "x") -> list[Any]:
    return [row[column] for row in frame.select(column).collect()]


def moment_of(table: LanceDataset, version: int = 1) -> datetime:
    """When a version was committed."""
    moment = table.snapshot.at(version).manifest.timestamp
    assert moment is not None
    return moment.astimezone(UTC)


def data_files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").iterdir()} if Path(uri, "data").exists() else set()


def named_files(uri: str) -> set[str]:
    snapshot = dataset(uri).snapshot
    return {file.path for fragment in snapshot.fragments for file in fragment.files}


# -- reading ----------------------------------------------------------------------------------------------------------


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


# -- writing ----------------------------------------------------------------------------------------------------------


def frame_of(spark: SparkSession, rows: int, partitions: int = 2, start: int = 0) -> DataFrame:
    return spark.range(start, start + rows, numPartitions=partitions).select(
        functions.col("id").alias("x"), functions.concat(functions.lit("n"), "id").alias("name")
    )


def save(frame: DataFrame, uri: str, mode: str = "append", **options: Any) -> None:
    frame.write.format("lance").mode(mode).options(**options).save(uri)


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
    # Spark does not wait for the other task before it aborts the write; then its file waits for clean-up.
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


# -- what Spark refuses, and the way to do it -------------------------------------------------------------------------


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


# -- SQL --------------------------------------------------------------------------------------------------------------


def test_a_view_reads_a_version_and_accepts_inserts(spark: SparkSession, numbers: str) -> None:
    create_view(spark, "numbers", numbers)
    create_view(spark, "numbers_at_1", numbers, version=1)
    spark.sql("INSERT INTO numbers VALUES (12, 'it''s', array(1.0F, 2.0F))")
    create_view(spark, "numbers", numbers)
    added = spark.sql("SELECT x, name FROM numbers EXCEPT SELECT x, name FROM numbers_at_1").collect()
    assert [tuple(row) for row in added] == [(12, "it's")]
    spark.sql("INSERT OVERWRITE numbers SELECT * FROM numbers_at_1 WHERE x < 2")
    create_view(spark, "numbers", numbers, filter="name = 'n1'")
    assert values(spark.table("numbers")) == [1]
    spark.catalog.dropTempView("numbers")


def test_a_view_shows_a_branch_or_a_moment_and_takes_no_rows(spark: SparkSession, numbers: str) -> None:
    table = dataset(numbers)
    first = moment_of(table)
    trial = table.create_branch("trial")
    trial.delete("x > 2")
    trial.delete("x > 0")
    table.delete("x = 0")
    everything = values(spark.read.format("lance").option("version", 1).load(numbers))
    for asked, shown in (
        ({"branch": "trial"}, [0]),
        ({"branch": "trial", "version": trial.version - 1}, [0, 1, 2]),
        ({"branch": "trial", "timestamp": moment_of(trial, trial.version - 1)}, [0, 1, 2]),
        ({"timestamp": first}, everything),
        ({"timestamp": first.replace(tzinfo=None).isoformat()}, everything),
        ({}, everything[1:]),
    ):
        create_view(spark, "shown", numbers, **asked)
        assert values(spark.table("shown")) == shown, asked
    create_view(spark, "shown", numbers, branch="trial")
    with pytest.raises(PySparkException, match="give the branch's own path"):
        spark.sql("INSERT INTO shown VALUES (12, 'x', array(1.0F, 2.0F))")
    spark.catalog.dropTempView("shown")
    for wrong, error, message in (
        ({"branch": "nope"}, ReferenceNotFound, "nope"),
        ({"branch": "trial", "tag": "x"}, InvalidInput, "'branch' and 'tag'|'tag' and 'branch'"),
        ({"timestamp": "yesterday"}, InvalidInput, "'timestamp' is a moment like"),
        ({"timestamp": first - timedelta(days=1)}, VersionNotFound, "no retained version is as old"),
    ):
        with pytest.raises(error, match=message):
            create_view(spark, "shown", numbers, **wrong)
    assert not spark.catalog.tableExists("shown")


def test_a_private_format_has_its_storage_options_in_no_plan(
    spark: SparkSession, numbers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A manifest store is an option without which nobody finds the rows: reads and writes show that it arrives.
    rows = f"sqlite:///{tmp_path}/hunter2.db"
    lake = private_format(spark, {"manifest_store": rows})
    assert lake == private_format(spark, {"manifest_store": rows}) != private_format(spark, {"manifest_store": "x"})
    assert "hunter2" not in lake and private_format(spark, None) == private_format(spark, {}) == "lance"
    moved = str(tmp_path / "moved.lance")
    spark.range(3).selectExpr("id AS x").write.format(lake).mode("append").save(moved)
    spark.range(2).selectExpr("id AS x").write.format(lake).mode("append").save(moved)
    assert dataset(moved, storage_options={"manifest_store": rows}).version == 2
    assert spark.read.format(lake).option("version", 1).load(moved).count() == 3
    create_view(spark, "moved", moved, storage_options={"manifest_store": rows})
    spark.sql("INSERT INTO moved VALUES (7)")
    create_view(spark, "moved", moved, storage_options={"manifest_store": rows})
    assert sorted(values(spark.table("moved"))) == [0, 0, 1, 1, 2, 7]
    with contextlib.closing(sqlite3.connect(tmp_path / "hunter2.db")) as connection:
        assert connection.execute("SELECT version FROM lance_manifests ORDER BY version").fetchall() == [
            (1,),
            (2,),
            (3,),
        ]
    capsys.readouterr()
    for mode in ("extended", "formatted", "codegen", "cost"):
        spark.table("moved").explain(mode=mode)
    shown = capsys.readouterr().out
    assert "hunter2" not in shown and lake in shown
    assert "hunter2" not in str(spark.sql("DESCRIBE EXTENDED moved").collect())


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


def test_a_view_of_a_relative_path_is_one_of_the_driver_s_folder(
    spark: SparkSession, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(numbers).parent)  # Spark's processes have the folder in which the session started
    create_view(spark, "near", Path(numbers).name)
    spark.sql("INSERT INTO near SELECT * FROM near")
    assert dataset(numbers).count_rows() == 2 * spark.table("near").count()


def test_a_uri_with_a_secret_reaches_no_statement(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="storage_options") as caught:
        create_view(spark, "numbers", "s3://key:hunter2@bucket/x")
    assert "hunter2" not in str(caught.value)


def test_versions_are_a_table_function(spark: SparkSession, numbers: str) -> None:
    dataset(numbers).delete("x = 0")
    register_functions(spark)
    rows = spark.sql(f"SELECT version, operation, num_rows FROM lance_versions('{numbers}')").collect()
    assert [tuple(row)[::2] for row in rows] == [(1, 12), (2, 11)]
    assert rows[1]["operation"].lower() == "delete"


# -- streams ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_stream(spark: SparkSession, tmp_path: Path) -> Callable[..., None]:
    landing = tmp_path / "landing"
    landing.mkdir()

    def run(uri: str, files: dict[str, list[int]], checkpoint: str = "checkpoint", **options: str) -> None:
        for name, rows in files.items():
            (landing / name).write_text("\n".join(json.dumps({"x": x}) for x in rows))
        stream = spark.readStream.schema("x bigint").option("maxFilesPerTrigger", 1).json(str(landing))
        query = (
            stream.writeStream.format("lance")
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .options(**options)
            .trigger(availableNow=True)
            .start(uri)
        )
        assert query.awaitTermination(250)

    return run


def test_each_micro_batch_is_a_version_and_a_restart_adds_only_what_is_new(
    run_stream: Callable[..., None], dataset_uri: str
) -> None:
    run_stream(dataset_uri, {"a.json": [1, 2], "b.json": [3]}, query="numbers")
    assert dataset(dataset_uri).version == 2
    run_stream(dataset_uri, {"c.json": [4]}, query="numbers")
    opened = dataset(dataset_uri)
    assert sorted(opened.to_table().column("x").to_pylist()) == [1, 2, 3, 4]


def test_a_micro_batch_that_spark_repeats_is_not_written_again(
    run_stream: Callable[..., None], dataset_uri: str
) -> None:
    run_stream(dataset_uri, {"a.json": [1, 2]}, query="numbers")
    # A lost checkpoint makes Spark start over, micro-batch 0 first.
    run_stream(dataset_uri, {}, checkpoint="another", query="numbers")
    assert dataset(dataset_uri).to_table().column("x").to_pylist() == [1, 2]


def test_a_stream_needs_no_name_since_spark_gives_it_an_id(
    run_stream: Callable[..., None], dataset_uri: str, tmp_path: Path
) -> None:
    run_stream(dataset_uri, {"a.json": [1, 2]})
    # Spark forgets that the micro-batch was committed, as after a crash, and repeats it.
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    run_stream(dataset_uri, {"b.json": [3]})
    assert dataset(dataset_uri).to_table().column("x").to_pylist() == [1, 2, 3]
    transaction = dataset(dataset_uri).read_transaction(1)
    query = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert transaction is not None and f"lance_ops.batch.{query}/0" in transaction.transaction_properties


def test_a_table_is_streamed_into_another_by_its_appended_rows(
    spark: SparkSession, numbers: str, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy.lance")

    def run() -> int:
        stream = spark.readStream.format("lance").option("max_rows_per_trigger", 9).load(numbers)
        writer = stream.writeStream.format("lance").option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start(copy).awaitTermination(250)
        return dataset(copy).version

    assert run() == 2
    save(frame_of(spark, 3, start=12), numbers)
    assert run() == 3
    assert dataset(copy).to_table().column("x").to_pylist() == [*range(15)]
