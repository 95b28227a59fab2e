"""What Spark's own catalog makes of tables of this format: it is decided before the library is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

import lance_ops
from lance_ops.spark import create_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    yield "kept_by_spark"
    spark.sql("DROP TABLE IF EXISTS kept_by_spark")


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(3).withColumnRenamed("id", "x")


def save_by_default(rows: DataFrame, name: str, path: str) -> None:
    rows.write.format("lance").option("path", path).saveAsTable(name)


def save_as_an_append(rows: DataFrame, name: str, path: str) -> None:
    rows.write.format("lance").mode("append").option("path", path).saveAsTable(name)


def create_by_write_to(rows: DataFrame, name: str, path: str) -> None:
    rows.writeTo(name).using("lance").option("path", path).create()


def save_without_a_path(rows: DataFrame, name: str) -> None:
    rows.write.format("lance").mode("append").saveAsTable(name)


def create_without_a_path(rows: DataFrame, name: str) -> None:
    rows.writeTo(name).using("lance").create()


def test_a_created_table_is_refused_with_what_to_do_instead(spark: SparkSession, dataset_uri: str, name: str) -> None:
    lance_ops.write_dataset(pa.table({"x": range(12)}), dataset_uri)
    with pytest.raises(PySparkException, match="create_view"):
        spark.sql(f"CREATE TABLE {name} USING lance OPTIONS (path '{dataset_uri}')")
    with pytest.raises(PySparkException, match="create_view"):
        spark.sql(f"CREATE TABLE {name} USING lance AS SELECT 1L AS x")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    create_view(spark, "numbers", dataset_uri)
    assert spark.table("numbers").count() == 12
    spark.catalog.dropTempView("numbers")


@pytest.mark.parametrize("save", [save_by_default, save_as_an_append, create_by_write_to])
def test_a_saved_table_is_written_but_its_name_says_what_to_do_instead(
    spark: SparkSession,
    rows: DataFrame,
    dataset_uri: str,
    name: str,
    save: Callable[[DataFrame, str, str], None],
) -> None:
    save(rows, name, dataset_uri)
    assert lance_ops.dataset(dataset_uri).count_rows() == 3
    with pytest.raises(PySparkException, match=r"needs the dataset's path.*create_view\(spark, name, path\)"):
        spark.table(name).count()
    with pytest.raises(PySparkException, match=r"create_view\(spark, name, path\)"):
        spark.sql(f"INSERT INTO {name} VALUES (9)")
    spark.sql(f"DROP TABLE {name}")
    assert lance_ops.dataset(dataset_uri).count_rows() == 3


@pytest.mark.parametrize("save", [save_without_a_path, create_without_a_path])
def test_a_table_without_a_path_is_refused_and_not_recorded(
    spark: SparkSession, rows: DataFrame, name: str, save: Callable[[DataFrame, str], None]
) -> None:
    with pytest.raises(AnalysisException, match=r"needs the dataset's path.*create_view\(spark, name, path\)"):
        save(rows, name)
    assert not spark.catalog.tableExists(name)
