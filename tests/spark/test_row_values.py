"""Values by row from a DataFrame or from raw files: no row of them reaches the driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

import lance_ops
from lance_ops.core.addresses import row_addr
from lance_ops.errors import InvalidInput, SchemaMismatch
from lance_ops.maintenance.ingest import RawReader
from lance_ops.spark import OnSpark, sql, table
from lance_ops.verbs import Update, do_now, make_plan
from tests.spark.rows_on_driver import refuse_rows_on_driver
from tests.spark.test_merging import Steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_columns_come_from_a_data_frame_in_its_types_or_in_those_of_the_table(
    spark: SparkSession, tasks: OnSpark, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = pa.table({"id": range(40), "w": pa.array([0] * 40, pa.uint8())})
    dataset = lance_ops.write_dataset(numbers, dataset_uri, max_rows_per_file=15)
    dataset.delete("id = 7")
    read = table(spark, dataset_uri).select("_rowaddr", "id").load()
    vectors = read.where("id % 3 = 0").selectExpr("_rowaddr", "array(float(id), float(1)) AS vec", "0 AS _fragid")
    hinted = vectors.withMetadata("vec", {"arrow.fixed-size-list.size": 2})
    weights = table(spark, dataset_uri).select("_rowid", "id").load().selectExpr("_rowid", "id AS W").where("W < 3")
    refuse_rows_on_driver(monkeypatch, read)
    steps = Steps()
    dataset.add_columns(hinted, runner=replace(tasks, on_progress=steps))
    counts = dataset.update_columns(weights, runner=tasks)
    monkeypatch.undo()
    assert counts == {"num_rows_updated": 3}
    assert steps.seen.pop("append to") >= 1  # the frame's rows are staged
    assert steps.seen == {"locate rows of": 1, "order rows of": 1, "add columns to": 3}
    assert dataset.schema.field("vec").type == pa.list_(pa.float32(), 2)
    assert dataset.schema.field("w").type == pa.uint8()
    assert dataset.to_table().to_pylist() == [
        {"id": n, "w": n if n < 3 else 0, "vec": None if n % 3 else [float(n), 1.0]} for n in range(40) if n != 7
    ]
    assert not [path for path in Path(dataset_uri, "data").iterdir() if path.is_dir()]


def test_sql_adds_and_updates_columns_from_a_view_or_a_query(spark: SparkSession, dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(9), "w": range(9)}), dataset_uri, max_rows_per_file=4)
    name = f"lance.`{dataset_uri}`"
    sql(spark, f"CREATE OR REPLACE TEMPORARY VIEW doubles AS SELECT _rowaddr, id * 2 AS d, id AS other FROM {name}")
    sql(spark, f"ALTER TABLE {name} ADD COLUMNS d, other FROM doubles")
    sql(
        spark,
        f"ALTER TABLE {name} UPDATE COLUMNS w FROM (SELECT _rowid AS _RowId, id + 1 AS w FROM {name} WHERE id > 5)",
    )
    dataset.checkout_latest()
    assert dataset.version == 3
    assert dataset.to_table().to_pylist() == [{"id": n, "w": n + (n > 5), "d": n * 2, "other": n} for n in range(9)]
    with pytest.raises(InvalidInput, match="no column _rowaddr or _rowid that names rows; it has w"):
        sql(spark, f"ALTER TABLE {name} UPDATE COLUMNS w FROM (SELECT id AS w FROM {name})")
    with pytest.raises(InvalidInput, match="FROM and a source with _rowaddr"):
        sql(spark, f"ALTER TABLE {name} UPDATE COLUMNS w INT")


def test_a_data_frame_that_is_refused_leaves_the_table_as_it_was(spark: SparkSession, dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(8)}), dataset_uri)
    before = sorted(Path(dataset_uri).rglob("*"))
    runner = OnSpark(spark)
    with pytest.raises(InvalidInput, match="name the same row"):
        dataset.add_columns(spark.range(8).selectExpr("id % 7 AS _rowaddr", "id AS v"), runner=runner)
    with pytest.raises(InvalidInput, match="no column _rowaddr or _rowid"):
        dataset.add_columns(spark.range(8), runner=runner)
    with pytest.raises(SchemaMismatch, match="'v'"):
        dataset.update_columns(spark.range(8).selectExpr("id AS _rowaddr", "id AS v"), runner=runner)
    with pytest.raises(SchemaMismatch, match="column '_rowaddr' is double"):
        dataset.update_columns(spark.sql("SELECT 0.5D AS _rowaddr, 1L AS id"), runner=runner)
    with pytest.raises(SchemaMismatch, match="has a column 'id': give 'ID' another name"):
        dataset.add_columns(spark.sql("SELECT 0L AS _rowaddr, 1L AS ID"), runner=runner)
    with pytest.raises(SchemaMismatch, match="column 'v' is there twice in the DataFrame"):
        dataset.add_columns(spark.sql("SELECT 0L AS _rowaddr, 1L AS v, 2L AS V"), runner=runner)
    with pytest.raises(SchemaMismatch, match="column 'id' is there twice in the DataFrame"):
        dataset.delete_by_keys(spark.sql("SELECT 0L AS id, 1L AS ID"), "id", runner=runner)
    assert (sorted(Path(dataset_uri).rglob("*")), lance_ops.dataset(dataset_uri).version) == (before, 1)


def test_a_struct_of_a_data_frame_replaces_whole_values_by_the_names_of_its_fields(
    spark: SparkSession, tasks: OnSpark, dataset_uri: str
) -> None:
    dataset = lance_ops.write_dataset(pa.table({"s": [{"x": 1, "y": "a"}]}), dataset_uri)
    with pytest.raises(SchemaMismatch, match="no field 's.x', and nulls would replace"):
        dataset.update_columns(spark.sql("SELECT 0L AS _rowaddr, named_struct('y', 'b') AS s"), runner=tasks)
    dataset.update_columns(spark.sql("SELECT 0L AS _rowaddr, named_struct('Y', 'b', 'x', 2L) AS S"), runner=tasks)
    assert dataset.to_table().to_pylist() == [{"s": {"x": 2, "y": "b"}}]


def test_the_driver_reads_no_row_of_files_whose_values_are_planned_and_written(
    spark: SparkSession, dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lance_ops.write_dataset(pa.table({"id": range(40), "w": [0] * 40}), dataset_uri, max_rows_per_file=15)
    files = tuple(str(tmp_path / f"{number}.parquet") for number in range(2))
    for begin, file in zip((0, 20), files, strict=True):
        addresses = [row_addr(n // 15, n % 15) for n in range(begin, begin + 20)]
        pyarrow.parquet.write_table(pa.table({"_rowaddr": addresses, "w": range(begin, begin + 20)}), file)
    verb = Update(files=files)
    _, here = make_plan(verb, data)

    def refuse(*_: object) -> None:
        raise AssertionError("the driver read a file")

    for name in ("batches", "schema"):
        monkeypatch.setattr(RawReader, name, refuse)
    steps = Steps()
    runner = OnSpark(spark, on_progress=steps, least_bytes=0)
    _, preview = make_plan(verb, data, runner)
    assert preview == here and preview.facts == {"matching_rows": 40}
    assert steps.seen == {
        "read the columns of": 1,
        "locate rows of": 2,
        "count named rows of": 1,
        "read first rows for": 1,
    }
    assert do_now(verb, data, runner).facts == {"matching_rows": 40}
    assert steps.seen.keys() - {"count named rows of", "read first rows for"} == {
        *("read the columns of", "stage values for", "locate rows of", "order rows of", "replace values in")
    }
    assert lance_ops.dataset(dataset_uri).to_table()["w"].to_pylist() == [*range(40)]
    assert not [path for path in Path(dataset_uri, "data").iterdir() if path.is_dir()]
