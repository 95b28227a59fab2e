"""`table(…)`: what a query names is read, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import functions

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidFilter, InvalidInput, VersionNotFound, WrongType
from lance_ops.spark import planned_read, small_read, sql, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments; `s` is in data files of its own."""
    rows = [{"x": i, "Name": f"n{i}"} for i in range(12)]
    opened = write_dataset(pa.Table.from_pylist(rows), dataset_uri, max_rows_per_file=4)
    structs = pa.array([{"a": i, "b": -i} for i in range(12)])
    opened.add_columns(pa.table({"s": structs}).to_reader())
    return opened


def remove_files(opened: LanceDataset, field_names: Iterable[str] | None = None, keep: tuple[int, ...] = ()) -> None:
    """Remove the data files of the columns, or all, but for those of some fragments: a read of them now fails."""
    ids = {node.id for name in field_names or opened.schema.names for node in opened.snapshot.schema.field(name).walk()}
    files = [
        file
        for fragment in opened.snapshot.fragments
        if fragment.id not in keep
        for file in fragment.files
        if ids & {*file.fields}
    ]
    assert files
    for file in files:
        Path(opened.uri, "data", file.path).unlink()


def test_only_selected_columns_are_read(spark: SparkSession, numbers: LanceDataset) -> None:
    remove_files(numbers, ["s"])
    frame = table(spark, numbers.uri).select("NAME", "x").load()
    assert frame.columns == ["Name", "x"]
    assert [tuple(row) for row in frame.collect()] == [(f"n{i}", i) for i in range(12)]


def test_only_fragments_that_the_filter_finds_are_read(spark: SparkSession, numbers: LanceDataset) -> None:
    numbers.create_scalar_index("x", "BTREE")
    remove_files(numbers, keep=(1,))
    query = table(spark, numbers.uri).where("x > 5").where("x < 8")
    assert [tuple(row) for row in query.select("s.b", "_fragid").load().collect()] == [(-6, 1), (-7, 1)]


def test_a_limit_reads_no_more_fragments_than_it_needs(spark: SparkSession, numbers: LanceDataset) -> None:
    remove_files(numbers, keep=(0, 1))
    frame = table(spark, numbers.uri).select("x").limit(9).limit(6).load()
    assert [row.x for row in frame.collect()] == [0, 1, 2, 3, 4, 5]


def test_a_limit_counts_the_matches_of_all_tasks_together(spark: SparkSession, numbers: LanceDataset) -> None:
    query = table(spark, numbers.uri).where("x % 2 = 1").limit(4)
    assert query.load().count() == 4
    assert query.limit(0).load().collect() == []


def test_a_query_stays_at_its_version_and_reads_branches(spark: SparkSession, numbers: LanceDataset) -> None:
    branch = numbers.create_branch("trial")
    branch.delete("x > 0")
    query = table(spark, numbers.uri)
    numbers.delete("x > 1")
    assert query.load().count() == 12
    assert table(spark, numbers.uri, ("trial", None)).load().count() == 1
    with pytest.raises(VersionNotFound):
        table(spark, numbers.uri, 77)


def test_row_columns_match_in_any_case_unless_the_session_minds_it(spark: SparkSession, numbers: LanceDataset) -> None:
    query = f"SELECT max(_RowId), max(n._FRAGID) FROM lance.`{numbers.uri}` AS n WHERE _RowAddr < 3"
    assert tuple(sql(spark, query).collect()[0]) == (2, 0)
    assert table(spark, numbers.uri).select("_ROWID").load().columns == ["_rowid"]
    read = spark.read.format("lance").option("columns", "x,_RowId").load(numbers.uri)
    assert read.columns == ["x", "_rowid"]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InvalidInput, match="no column '_ROWID'"):
            table(spark, numbers.uri).select("_ROWID")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_what_cannot_be_read_is_refused_before_spark_plans(spark: SparkSession, numbers: LanceDataset) -> None:
    query = table(spark, numbers.uri)
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        query.select("nope")
    with pytest.raises(InvalidFilter):
        query.where("nope = 1")
    with pytest.raises(WrongType, match=r"use .load\(\).where"):
        query.where(functions.col("x") > 1)
    with pytest.raises(InvalidInput, match="where comes before limit"):
        query.limit(3).where("x = 1")
    with pytest.raises(InvalidInput, match="chosen already: x"):
        query.select("x").select("s")
    with pytest.raises(InvalidInput, match="limit is a number of rows"):
        query.limit(-1)
    with pytest.raises(WrongType, match="version is a number.*not True"):
        table(spark, numbers.uri, True)
    with pytest.raises(InvalidInput, match="storage_options") as caught:
        table(spark, "s3://key:hunter2@bucket/x")
    assert "hunter2" not in str(caught.value)


def test_names_follow_the_sessions_case_rule(spark: SparkSession, numbers: LanceDataset) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InvalidInput, match="no column 'NAME'"):
            table(spark, numbers.uri).select("NAME")
        assert table(spark, numbers.uri).select("Name").load().columns == ["Name"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_storage_option_reaches_the_tasks_and_no_plan(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"manifest_store": f"sqlite:///{tmp_path}/hunter2.db"}
    uri = str(tmp_path / "moved.lance")
    write_dataset(pa.table({"x": [1, 2]}), uri, storage_options=options)
    frame = table(spark, uri, storage_options=options).where("x = 2").load()
    assert [row.x for row in frame.collect()] == [2]
    frame.explain(mode="extended")
    assert "hunter2" not in capsys.readouterr().out


def test_a_small_read_starts_no_python_worker_and_spark_knows_its_size(
    spark: SparkSession, numbers: LanceDataset
) -> None:
    frame = table(spark, numbers.uri).where("x > 3").select("x").load()
    remove_files(numbers)  # the rows are in Spark
    assert {leaf.split(" [")[0] for leaf in plan_of(frame).strip().split("\n")} == {"LocalTableScan"}
    joined = frame.join(spark.range(5_000_000).withColumnRenamed("id", "x"), "x")
    assert "BroadcastHashJoin" in plan_of(joined)
    assert [row.x for row in joined.orderBy("x").collect()] == [*range(4, 12)]


def test_a_small_read_of_more_rows_is_shared_among_tasks(spark: SparkSession, dataset_uri: str) -> None:
    values = np.arange(1_200_000)
    opened = write_dataset(pa.table({"x": values, "text": values.astype(str)}), dataset_uri, max_rows_per_file=500_000)
    setting = "spark.sql.execution.arrow.localRelationThreshold"
    before = spark.conf.get(setting)
    frame = table(spark, opened.uri).select("x").load()
    assert spark.conf.get(setting) == before
    assert "Scan ExistingRDD arrow" in plan_of(frame) and frame.rdd.getNumPartitions() == 2
    assert estimate_of(frame) == values.nbytes
    (row,) = frame.agg(functions.sum("x"), functions.count("x")).collect()
    assert tuple(row) == (int(values.sum()), len(values))


def test_a_small_read_that_decodes_to_much_is_left_to_tasks(
    spark: SparkSession, numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_read, "_MOST_DECODED_BYTES", 40)
    frame = table(spark, numbers.uri).select("x").load()
    assert "MapInArrow" in plan_of(frame)
    assert [row.x for row in frame.collect()] == [*range(12)]


@pytest.mark.parametrize("wrap", ["struct", "list", "map"])
def test_a_null_struct_of_fields_that_are_not_nullable_is_read(
    spark: SparkSession, dataset_uri: str, wrap: str
) -> None:
    fields = [pa.field("x", pa.int64(), nullable=False)]
    structs = pa.StructArray.from_arrays([pa.array([1, 2])], fields=fields, mask=pa.array([True, False]))
    wrapped = {
        "struct": structs,
        "list": pa.ListArray.from_arrays([0, 1, 2], structs),
        "map": pa.MapArray.from_arrays([0, 1, 2], ["a", "b"], structs),
    }
    write_dataset(pa.table({"v": wrapped[wrap]}), dataset_uri)
    rows = [row.v for row in table(spark, dataset_uri).load().collect()]
    expected = {"struct": [None, (2,)], "list": [[None], [(2,)]], "map": [{"a": None}, {"b": (2,)}]}
    assert rows == expected[wrap]


@pytest.mark.parametrize("disabled", ["", "small-reads"])
def test_a_read_without_rows_has_the_columns(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch, disabled: str
) -> None:
    monkeypatch.setenv("LANCE_OPS_DISABLE", disabled)
    opened = write_dataset(pa.table({"x": pa.array([], pa.int64())}), dataset_uri)
    frame = table(spark, opened.uri).load()
    assert (frame.columns, frame.collect()) == (["x"], [])


def test_rows_without_bytes_are_read(spark: SparkSession, dataset_uri: str) -> None:
    opened = write_dataset(pa.table({"x": range(3), "n": pa.nulls(3)}), dataset_uri)
    assert [tuple(row) for row in table(spark, opened.uri).select("n").load().collect()] == [(None,)] * 3


class DoubleOfFrame:
    """A frame of an RDD whose plan, a private part of Spark, cannot be taken apart."""

    def __init__(self, error: Exception) -> None:
        self.asked = Mock(side_effect=error)
        plan = SimpleNamespace(nodeName=lambda: "LogicalRDD", productArity=self.asked)
        self._jdf = SimpleNamespace(queryExecution=lambda: SimpleNamespace(logical=lambda: plan))


@pytest.mark.parametrize("error", [AttributeError("_jvm"), Py4JError("no method"), TypeError("a package")])
def test_a_small_read_has_no_size_where_private_parts_of_spark_differ(error: Exception) -> None:
    double = DoubleOfFrame(error)
    frame: Any = double
    assert small_read._with_size(Mock(), frame, 8) is frame
    double.asked.assert_called_once_with()


def test_a_session_of_connect_gets_no_small_read() -> None:
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    reader = Mock()
    assert planned_read.planned_frame(session, reader, Mock(), "name") is None
    assert reader.mock_calls == []


def test_a_read_by_tasks_is_planned_here_and_spark_knows_its_size(
    spark: SparkSession, numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_OPS_DISABLE", "small-reads")
    frame = table(spark, numbers.uri).where("x > 3").select("x").load()
    plan = plan_of(frame)
    assert f"MapInArrow lance {Path(numbers.uri).name} v{numbers.version}" in plan
    assert "PythonDataSource" not in plan
    joined = frame.join(spark.range(5_000_000).withColumnRenamed("id", "x"), "x")
    assert "BroadcastHashJoin" in plan_of(joined)
    assert [row.x for row in joined.orderBy("x").collect()] == [*range(4, 12)]


def test_a_large_read_is_estimated_by_its_bytes(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_OPS_DISABLE", "small-reads")
    random = np.random.default_rng(7)
    long = pa.array([random.bytes(1000) for _ in range(3000)])  # longer than Spark takes binaries for
    opened = write_dataset(pa.table({"x": range(3000), "long": long}), dataset_uri, max_rows_per_file=1000)
    stored = sum(path.stat().st_size for path in Path(dataset_uri, "data").iterdir())
    frame = table(spark, opened.uri).load()
    assert 0.9 * stored < estimate_of(frame) < 1.1 * stored
    assert frame.count() == 3000
    monkeypatch.setattr(planned_read, "_MOST_ESTIMATED_BYTES", stored // 2)
    larger = table(spark, opened.uri).load()
    assert "MapInArrow" in plan_of(larger)
    assert 0.4 * stored < estimate_of(larger) < 0.6 * stored
    assert larger.select("x").distinct().count() == 3000


def test_reads_that_this_process_cannot_plan_go_through_the_data_source(
    spark: SparkSession, numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_OPS_DISABLE", "small-reads")
    query = table(spark, numbers.uri).where("x > 3").select("x")
    with monkeypatch.context() as patched:
        patched.setattr(planned_read, "_MOST_RANGES", 1)
        assert "MapInArrow" not in plan_of(query.load())
    monkeypatch.setenv("LANCE_OPS_DISABLE", "small-reads,planned-reads")
    frame = query.load()
    assert "MapInArrow" not in plan_of(frame)
    assert [row.x for row in frame.collect()] == [*range(4, 12)]


def plan_of(frame: DataFrame) -> str:
    """Return the text of the physical plan."""
    return str(frame._jdf.queryExecution().executedPlan())


def estimate_of(frame: DataFrame) -> int:
    """Return how many bytes Spark takes the frame for."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
