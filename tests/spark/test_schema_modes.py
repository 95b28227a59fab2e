"""What writes on Spark do with columns that the table does not have, most without a Spark session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import lance_ops
from lance_ops.errors import InvalidInput, SchemaMismatch
from lance_ops.spark import sql
from lance_ops.spark import write as spark_write
from lance_ops.spark.data_source import SourceOptions, plan_write
from lance_ops.spark.translation import schema_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(
    uri: str, table: pa.Table, options: Mapping[str, str] = MappingProxyType({}), *, overwrite: bool = False
) -> int | None:
    shape = schema_for_spark(table.schema)
    plan = plan_write(SourceOptions.parse({"path": uri, **options}), shape, "overwrite" if overwrite else "append")
    return plan.commit(plan.write(table.cast(shape).to_batches()))


@pytest.fixture
def uri(dataset_uri: str) -> str:
    lance_ops.write_dataset(
        pa.table({"Id": pa.array([1], pa.uint8()), "x": pa.array([1.5], pa.float32())}), dataset_uri
    )
    return dataset_uri


WIDER = pa.table({"ID": pa.array([2], pa.uint8()), "X": [1e300], "note": ["new"]})


@pytest.mark.parametrize(
    "options", [{"mergeSchema": "true"}, {"merge_schema": "true"}, {"schema_mode": "add"}], ids=str
)
def test_a_merged_schema_gets_new_columns_and_wider_types(uri: str, options: dict[str, str]) -> None:
    assert write(uri, WIDER, options) == 3, "the schema, and then the rows"
    dataset = lance_ops.dataset(uri)
    assert dataset.schema == pa.schema([("Id", pa.uint8()), ("x", pa.float64()), ("note", pa.string())])
    assert dataset.to_table().to_pylist() == [
        {"Id": 1, "x": 1.5, "note": None},
        {"Id": 2, "x": 1e300, "note": "new"},
    ]
    assert write(uri, WIDER, options) == 4, "the schema needs nothing more"


@pytest.mark.parametrize("options", [{}, {"mergeSchema": "false"}, {"schema_mode": "error"}], ids=str)
def test_otherwise_a_new_column_is_refused_before_a_row_is_written(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(SchemaMismatch, match="'note' is not in the table"):
        write(uri, WIDER, options)


def test_a_task_that_fails_leaves_the_schema_as_it_was(uri: str) -> None:
    plan = plan_write(SourceOptions.parse({"path": uri, "mergeSchema": "true"}), schema_for_spark(WIDER.schema))
    bad = pa.record_batch({"ID": pa.array([300], pa.int16()), "X": [1.0], "note": ["n"]})
    with pytest.raises(SchemaMismatch, match="'Id'"):
        plan.write([bad])
    assert lance_ops.dataset(uri).version == 1
    assert len(list(Path(uri, "data").iterdir())) == 1


def test_a_crash_between_the_schema_and_the_rows_leaves_a_table_that_the_next_write_uses(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lance_ops.transactions.Append", None)
        with pytest.raises(TypeError):
            write(uri, WIDER, {"mergeSchema": "true"})
    left = lance_ops.dataset(uri)
    assert (left.version, left.to_table().to_pylist()) == (2, [{"Id": 1, "x": 1.5, "note": None}])
    assert left.verify().ok
    assert write(uri, WIDER, {"mergeSchema": "true"}) == 3, "the schema is there"
    assert lance_ops.dataset(uri).count_rows() == 2


def test_an_overwrite_replaces_keeps_or_extends_the_schema_as_it_is_told(uri: str) -> None:
    new = pa.table({"x": [2.5], "y": [1]})
    assert write(uri, new, overwrite=True) == 2
    assert lance_ops.dataset(uri).schema == pa.schema([("x", pa.float64()), ("y", pa.int64())])
    with pytest.raises(SchemaMismatch, match="'z' is not in the table"):
        write(uri, pa.table({"z": [1]}), {"overwriteSchema": "false"}, overwrite=True)
    assert write(uri, pa.table({"z": [1]}), {"mergeSchema": "true"}, overwrite=True) == 3
    assert lance_ops.dataset(uri).to_table().to_pylist() == [{"x": None, "y": None, "z": 1}]
    shaped = pa.table({"x": pa.array([1], pa.int16())})
    lance_ops.write_dataset(pa.table({"x": pa.array([1], pa.uint8())}), uri, mode="overwrite")
    write(uri, shaped, overwrite=True)
    assert lance_ops.dataset(uri).schema.field("x").type == pa.uint8(), "it looks the same in Spark"
    write(uri, shaped, {"overwriteSchema": "true"}, overwrite=True)
    assert lance_ops.dataset(uri).schema.field("x").type == pa.int16()


def test_rows_of_a_condition_are_replaced_by_rows_with_new_columns(uri: str) -> None:
    assert write(uri, WIDER.slice(0, 0), {"replaceWhere": "Id = 1", "mergeSchema": "true"}, overwrite=True) == 3
    dataset = lance_ops.dataset(uri)
    assert (dataset.count_rows(), dataset.schema.names) == (0, ["Id", "x", "note"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mergeSchema": "true", "overwriteSchema": "true"},
            "'mergeSchema' and 'overwriteSchema' both say",
        ),
        ({"schema_mode": "merge"}, "'schema_mode' is one of error, add, overwrite, not 'merge'"),
        ({"schema_mode": "overwrite"}, "'schema_mode' replaces the schema: give it with mode 'overwrite'"),
        ({"overwriteSchema": "true"}, "'overwriteSchema' replaces the schema"),
        ({"mergeSchema": "yes"}, "'mergeSchema' is 'true' or 'false'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(uri: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        write(uri, WIDER, options)


@pytest.mark.spark
def test_a_frame_with_new_columns_is_merged_in_spark(spark: SparkSession, uri: str) -> None:
    frame = spark.range(2, 4).selectExpr("cast(id as smallint) ID", "cast(id as double) x", "named_struct('k', id) s")
    frame.write.format("lance").mode("append").option("mergeSchema", "true").save(uri)
    dataset = lance_ops.dataset(uri)
    assert (dataset.version, dataset.schema.names) == (3, ["Id", "x", "s"])
    assert sorted(dataset.to_table().to_pylist(), key=lambda row: row["Id"])[1:] == [
        {"Id": 2, "x": 2.0, "s": {"k": 2}},
        {"Id": 3, "x": 3.0, "s": {"k": 3}},
    ]


GROWN = "; or {} adds note, makes x double"


@pytest.mark.spark
def test_rows_that_do_not_fit_are_told_the_option_by_the_door_that_was_used(spark: SparkSession, uri: str) -> None:
    query = "SELECT 1S AS Id, 2D AS x, 'n' AS note"
    frame = spark.sql(query)
    with pytest.raises(SchemaMismatch, match=GROWN.format('schema_mode="add"')):
        spark_write(frame, uri)
    with pytest.raises(AnalysisException, match=GROWN.format("option 'mergeSchema' 'true'")):
        frame.write.format("lance").mode("append").save(uri)
    ways = "ALTER TABLE … ADD COLUMNS or ALTER COLUMN … TYPE"
    with pytest.raises(SchemaMismatch, match=GROWN.format(ways)):
        sql(spark, f"INSERT INTO lance.`{uri}` BY NAME {query}")


@pytest.mark.spark
def test_a_value_that_does_not_fit_is_told_the_type_that_would_hold_it(spark: SparkSession, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"n": pa.array([1], pa.int32())}), dataset_uri)
    with pytest.raises(SchemaMismatch, match=r"""not in range.*; or schema_mode="add" makes n int64$"""):
        spark_write(spark.sql("SELECT 3000000000L AS n"), dataset_uri)


def test_no_option_is_named_where_it_would_not_help(uri: str) -> None:
    def error_of(rows: pa.Table, **options: str) -> str:
        parsed = SourceOptions.parse({"path": uri, **options})
        with pytest.raises(SchemaMismatch) as caught:
            plan_write(parsed, schema_for_spark(rows.schema), grows_by="the option")
        return str(caught.value)

    texts = pa.table({"Id": ["a"], "note": ["n"]})  # the new column would be added, but the key still does not fit
    assert "; or" not in error_of(texts)
    assert "; or" not in error_of(WIDER, schema_mode="error")
    many = pa.table({"Id": pa.array([1], pa.int16()), **{f"c{i}": [1] for i in range(7)}})
    assert error_of(many).endswith("; or the option adds c0, adds c1, adds c2, adds c3, adds c4, …")
