"""`sql`: names of tables in a namespace, by the session's case rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.api.namespaces import PatternNamespace
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput
from lance_ops.runners import InThreads
from lance_ops.spark import sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder with one table, whose name is `Tides`."""
    write_dataset(pa.table({"x": [1]}), tmp_path / "Tides.lance")
    return tmp_path


@pytest.fixture
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def test_a_name_is_matched_without_case(spark: SparkSession, lake: Path) -> None:
    sql(spark, "INSERT INTO TIDES VALUES (2)", namespace=lake)
    assert sql(spark, "SELECT sum(tides.x) FROM tides", namespace=lake).collect()[0][0] == 3
    assert sql(spark, "DELETE FROM tIDES WHERE x = 2", namespace=lake).collect()[0][0] == 1
    assert LanceDataset(lake / "Tides.lance").to_table()["x"].to_pylist() == [1]


def test_a_table_is_not_created_beside_one_that_differs_in_case_alone(spark: SparkSession, lake: Path) -> None:
    sql(spark, "CREATE TABLE IF NOT EXISTS tides USING lance AS SELECT 2L AS x", namespace=lake)
    with pytest.raises(DatasetAlreadyExists):
        sql(spark, "CREATE TABLE tides USING lance AS SELECT 2L AS x", namespace=lake)
    sql(spark, "CREATE OR REPLACE TABLE tides USING lance AS SELECT 2L AS x", namespace=lake)
    assert [path.name for path in lake.iterdir()] == ["Tides.lance"]
    assert LanceDataset(lake / "Tides.lance").to_table()["x"].to_pylist() == [2]


def test_a_name_that_several_tables_have_is_refused_with_all_of_them(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"x": [5]}), lake / "TIDES.lance")
    with pytest.raises(InvalidInput, match="'tides' may be any of the tables TIDES, Tides: write the name as"):
        sql(spark, "SELECT * FROM tides", namespace=lake)
    assert sql(spark, "SELECT x FROM TIDES", namespace=lake).collect()[0][0] == 5


def test_a_view_comes_before_a_name_that_differs_in_case(spark: SparkSession, lake: Path) -> None:
    spark.sql("SELECT 7L AS x").createOrReplaceTempView("tides")
    try:
        assert sql(spark, "SELECT x FROM tides", namespace=lake).collect()[0][0] == 7
        assert sql(spark, "SELECT x FROM Tides", namespace=lake).collect()[0][0] == 1
        assert sql(spark, "SELECT x FROM lance.tides", namespace=lake).collect()[0][0] == 1
        write_dataset(pa.table({"x": [5]}), lake / "TIDES.lance")
        assert sql(spark, "SELECT x FROM tides", namespace=lake).collect()[0][0] == 7
        assert sql(spark, "SELECT x FROM TIDES", namespace=lake).collect()[0][0] == 5
    finally:
        spark.catalog.dropTempView("tides")


@pytest.mark.usefixtures("case_sensitive")
def test_a_name_is_matched_with_case_where_the_session_does(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(spark, "SELECT * FROM tides", namespace=lake)
    assert sql(spark, "SELECT x FROM Tides", namespace=lake).collect()[0][0] == 1


@pytest.mark.parametrize(
    ("query", "num_walks"),
    [
        ("SELECT a.x FROM Tides a JOIN Tides b ON a.x = b.x", 1),
        ("SELECT x FROM tides UNION SELECT x FROM tides", 2),  # the second walk looks at names in any case
        ("SELECT a.x FROM shown a JOIN shown b ON a.x = b.x", 2),
        ("INSERT INTO Tides SELECT x FROM Tides", 1),
        ("DELETE FROM Tides WHERE x IN (SELECT x + 1 FROM Tides)", 1),
    ],
)
def test_the_folders_of_a_pattern_are_walked_once_for_a_name(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, query: str, num_walks: int
) -> None:
    spark.sql("SELECT 1L AS x").createOrReplaceTempView("shown")
    walks: list[str] = []

    def places(namespace: PatternNamespace, *args: Any, **kwargs: Any) -> dict[str, str]:
        walks.append(query)
        return walk(namespace, *args, **kwargs)

    walk = PatternNamespace._places
    monkeypatch.setattr(PatternNamespace, "_places", places)
    try:
        sql(spark, query, namespace=f"{lake}/*.lance", runner=InThreads()).collect()
    finally:
        spark.catalog.dropTempView("shown")
    assert len(walks) == num_walks


def test_tables_of_the_namespace_are_shown_in_the_form_of_spark(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"x": [5]}), lake / "moons.lance")
    spark.sql("SELECT 7L AS x").createOrReplaceTempView("tidy")
    try:
        shown = sql(spark, "SHOW TABLES", namespace=lake)
        assert shown.schema == spark.sql("SHOW TABLES").schema
        rows = {tuple(row) for row in shown.collect()}
        assert {("lance", "Tides", False), ("lance", "moons", False), ("", "tidy", True)} <= rows
        for like in ("LIKE 'TI*|none'", "'TI*|none'"):
            found = sorted(tuple(row) for row in sql(spark, f"SHOW TABLES {like}", namespace=lake).collect())
            assert found == [("", "tidy", True), ("lance", "Tides", False)]
        own = sql(spark, "SHOW TABLES IN lance LIKE 't*'", namespace=lake).collect()
        assert [tuple(row) for row in own] == [("lance", "Tides", False)]
        for text in ("SHOW TABLES IN default", "SHOW TABLES"):
            others = sql(spark, text, namespace=lake if "IN" in text else None).collect()
            assert "tidy" in [row.tableName for row in others]
            assert "moons" not in [row.tableName for row in others]
    finally:
        spark.catalog.dropTempView("tidy")
