"""`sql`: whose error a statement raises that this library does not execute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder with one table, whose name is `tides`."""
    write_dataset(pa.table({"x": [1]}), tmp_path / "tides.lance")
    return tmp_path


@pytest.mark.parametrize("text", ["OPTIMIZE of_delta ZORDER BY (x)", "VACUUM of_delta", "DESC HISTORY of_delta"])
def test_the_error_of_another_library_that_has_the_statement_is_raised(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def refuse(query: str) -> DataFrame:
        raise AnalysisException(f"[DELTA_REFUSES] {query}")

    monkeypatch.setattr(spark, "sql", refuse)
    with pytest.raises(AnalysisException, match="DELTA_REFUSES"):
        sql(spark, text, namespace=lake)


def test_an_ambiguous_namespace_does_not_hide_an_error_of_spark(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"x": [1]}), lake / "other" / "tides.lance")
    pattern = str(lake / "**" / "*.lance")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        sql(spark, "SHOW TABLES IN nope", namespace=pattern)
    with pytest.raises(InvalidInput, match="are both named 'tides'"):
        sql(spark, "REPAIR TABLE tides", namespace=pattern)


def test_a_table_of_another_database_is_not_that_of_the_namespace(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="REPAIR of a Lance table"):
        sql(spark, "REPAIR TABLE tides", namespace=lake)
    for name in ("default.tides", "other_db.tides", "spark_catalog.default.tides"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql(spark, f"REPAIR TABLE {name}", namespace=lake)


def test_parameters_have_their_values_in_queries_conditions_and_values(spark: SparkSession, lake: Path) -> None:
    def run(text: str, args: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in sql(spark, text, args, namespace=lake).collect()]

    uri = lake / "tides.lance"
    run("INSERT INTO tides SELECT * FROM VALUES (?), (?) AS q(x)", [2, 3])
    assert run("SELECT x FROM tides WHERE x > :least ORDER BY x", {"least": 1, "unused": 2}) == [(2,), (3,)]
    assert run("SELECT :least AS x", {"least": 1}) == [(1,)]
    assert run("UPDATE tides SET x = x + :more WHERE x = :x", {"more": 10, "x": 3}) == [(1,)]
    assert run("UPDATE tides SET x = x * ? WHERE x > ?", [2, 12]) == [(1,)]
    assert run("DELETE FROM tides WHERE x = :x", {"x": 26}) == [(1,)]
    assert run("DELETE FROM tides WHERE x IN (SELECT :x)", {"x": 2}) == [(1,)]
    run("CREATE TABLE named USING lance AS SELECT :text AS s", {"text": "it's {x}"})
    assert run("SELECT s FROM named WHERE s = :text", {"text": "it's {x}"}) == [("it's {x}",)]
    assert LanceDataset(uri).to_table()["x"].to_pylist() == [1]
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        run("DELETE FROM tides WHERE x = :x", {"y": 1})
    merge = "MERGE INTO tides USING (SELECT 1L AS x) q ON tides.x = q.x WHEN MATCHED AND q.x < :x THEN DELETE"
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        run(merge, {"y": 9})
    run(merge, {"x": 1})
    assert LanceDataset(uri).to_table()["x"].to_pylist() == [1]
    run(merge, {"x": 9})
    assert LanceDataset(uri).to_table()["x"].to_pylist() == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [(2, [2]), (-2, [-2]), (True, None), ("2", None), (2.0, None), (Decimal(2), None)],
)
def test_a_parameter_that_is_a_value_of_the_column_is_looked_up_in_the_index(
    spark: SparkSession, tmp_path: Path, value: Any, expected: list[int] | None
) -> None:
    write_dataset(pa.table({"x": range(-5, 5)}), tmp_path / "t.lance").create_scalar_index("x", "BTREE")
    query = "SELECT x FROM t WHERE x = :x"
    shown = sql(spark, f"EXPLAIN {query}", {"x": value}, namespace=tmp_path).collect()[0][0]
    assert ("ScalarIndexQuery" in shown) == (expected is not None)
    if expected is not None:
        assert [row.x for row in sql(spark, query, {"x": value}, namespace=tmp_path).collect()] == expected


@pytest.mark.parametrize("text", ["a", "it's", 'a"b', "a\\nb", "{x}", ""])
def test_a_text_that_is_a_parameter_is_exactly_this_text(spark: SparkSession, tmp_path: Path, text: str) -> None:
    write_dataset(pa.table({"s": [text, "other", None]}), tmp_path / "t.lance")
    counted = sql(spark, "DELETE FROM t WHERE s = :s", {"s": text}, namespace=tmp_path).collect()[0][0]
    assert counted == 1
    assert LanceDataset(tmp_path / "t.lance").to_table()["s"].to_pylist() == ["other", None]


def test_a_statement_whose_table_has_a_longer_name_is_told_how_to_name_it(spark: SparkSession, lake: Path) -> None:
    for text in ("OPTIMIZE lance.db.tides", "VACUUM TABLE lance.db.tides", "ALTER TABLE lance.db.tides DROP COLUMN x"):
        with pytest.raises(UnsupportedFeature) as raised:
            sql(spark, text, namespace=lake)
        shown = str(raised.value)
        assert "in this form" in shown and "without a database" in shown and "understood are" not in shown
    assert sql(spark, "OPTIMIZE TABLE tides", namespace=lake).count() == 1


def test_temporary_views_have_names_of_columns_and_may_be_global(spark: SparkSession, lake: Path) -> None:
    sql(spark, "CREATE OR REPLACE TEMP VIEW v (a, `b c`) AS SELECT x, x + 1 FROM tides", namespace=lake)
    assert [row.asDict() for row in spark.table("v").collect()] == [{"a": 1, "b c": 2}]
    sql(spark, f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW g AS SELECT x FROM lance.`{lake}/tides.lance`")
    assert spark.table("global_temp.g").count() == 1
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        sql(spark, "CREATE GLOBAL TEMP VIEW g AS SELECT x FROM tides", namespace=lake)
    with pytest.raises(InvalidInput, match="view v names 1 columns, and its query gives 2"):
        sql(spark, "CREATE OR REPLACE TEMP VIEW v (a) AS SELECT x, x FROM tides", namespace=lake)
    for text in ("CREATE VIEW w AS SELECT x FROM tides", "CREATE OR REPLACE VIEW w (a) AS SELECT x FROM tides"):
        with pytest.raises(UnsupportedFeature, match="CREATE VIEW w over a Lance table .*CREATE TEMPORARY VIEW"):
            sql(spark, text, namespace=lake)
    sql(spark, "CREATE OR REPLACE TEMP VIEW of_spark AS SELECT 1 AS x", namespace=lake)
    assert spark.table("of_spark").count() == 1


@pytest.mark.parametrize("words", ["TEMP", "OR REPLACE GLOBAL TEMPORARY"])
def test_a_temporary_view_may_have_any_name(spark: SparkSession, lake: Path, words: str) -> None:
    sql(spark, f"CREATE {words} VIEW `2026-01.d``e` AS SELECT x FROM tides", namespace=lake)
    place = "global_temp." if "GLOBAL" in words else ""
    assert spark.sql(f"SELECT * FROM {place}`2026-01.d``e`").count() == 1
    spark.sql(f"DROP VIEW {place}`2026-01.d``e`")


def test_columns_of_a_temporary_view_may_have_comments(spark: SparkSession, lake: Path) -> None:
    text = (
        "CREATE OR REPLACE TEMP VIEW v (a COMMENT 'it''s the first', `b.c`, d COMMENT '') AS SELECT x, x, x FROM tides"
    )
    sql(spark, text, namespace=lake)
    assert [tuple(row) for row in spark.table("v").collect()] == [(1, 1, 1)]
    assert [(field.name, field.metadata.get("comment")) for field in spark.table("v").schema] == (
        [("a", "it's the first"), ("b.c", None), ("d", "")]
    )


@pytest.mark.parametrize("words", ["(a NOT NULL)", "(x AS a)", "COMMENT 'all'", "(a) TBLPROPERTIES ('b' = 'c')", "()"])
def test_other_words_before_the_query_of_a_view_are_refused(spark: SparkSession, lake: Path, words: str) -> None:
    with pytest.raises(InvalidInput, match="is needed in place of"):
        sql(spark, f"CREATE TEMPORARY VIEW never {words} AS SELECT x FROM tides", namespace=lake)
    assert not spark.catalog.tableExists("never")


def test_a_temporary_view_that_may_be_there_is_refused_with_what_to_write(spark: SparkSession, lake: Path) -> None:
    text = "CREATE TEMPORARY VIEW IF NOT EXISTS never AS SELECT x FROM"
    with pytest.raises(ParseException, match="IF NOT EXISTS"):
        sql(spark, f"{text} range(3) AS q(x)", namespace=lake)
    with pytest.raises(UnsupportedFeature, match="IF NOT EXISTS of the temporary view never .*CREATE OR REPLACE"):
        sql(spark, f"{text} tides", namespace=lake)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE OR REPLACE TEMPORARY VIEW of_spark (a INT, b STRING) USING csv OPTIONS (path '{}/in.csv')",
        "CREATE OR REPLACE TEMPORARY VIEW of_spark (a COMMENT 'x', b) AS SELECT * FROM csv.`{}/in.csv`",
        "CREATE OR REPLACE TEMPORARY VIEW of_spark COMMENT 'all' AS SELECT _c0 AS a, _c1 AS b FROM csv.`{}/in.csv`",
        "CREATE OR REPLACE TEMPORARY VIEW identifier('of_spark') AS SELECT _c0 AS a, _c1 AS b FROM csv.`{}/in.csv`",
    ],
)
def test_a_view_of_no_lance_table_is_made_by_spark(spark: SparkSession, lake: Path, text: str) -> None:
    (lake / "in.csv").write_text("7,seven\n")
    sql(spark, text.replace("{}", str(lake)), namespace=lake)
    assert [(str(row.a), row.b) for row in spark.table("of_spark").collect()] == [("7", "seven")]


@pytest.mark.parametrize("name", ["insert", "delete", "merge"])
def test_a_query_of_with_may_have_the_name_of_a_change(spark: SparkSession, lake: Path, name: str) -> None:
    queries = f"WITH q AS (SELECT 1), {name} AS (SELECT 1 AS x)"
    for query in (
        f"{queries} SELECT t.x FROM {name} q JOIN tides t ON t.x = q.x",
        f"{queries} SELECT {name}.x FROM tides, {name} WHERE tides.x = {name}.x",
    ):
        assert [row.x for row in sql(spark, query, namespace=lake).collect()] == [1]
    insert = f"WITH {name} (x) AS (SELECT 2L) INSERT INTO tides SELECT x FROM {name}"
    sql(spark, insert, namespace=lake)
    assert LanceDataset(lake / "tides.lance").to_table()["x"].to_pylist() == [1, 2]
    with pytest.raises(UnsupportedFeature, match="WITH before DELETE of a Lance table"):
        sql(spark, f"WITH {name} AS (SELECT 1) DELETE FROM tides", namespace=lake)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM numbers_of_spark |> LIMIT 1",
        "TABLE numbers_of_spark |> LIMIT 1",
        "FROM numbers_of_spark |> SET id = id |> LIMIT 1",
        "SELECT * FROM VALUES (0) AS numbers_of_spark(id) |> AGGREGATE max(id) AS id",
    ],
)
def test_a_query_on_no_lance_table_reaches_spark_unchanged(spark: SparkSession, lake: Path, text: str) -> None:
    spark.range(1).createOrReplaceTempView("numbers_of_spark")
    assert [row.id for row in sql(spark, text, namespace=lake).collect()] == [0]
    spark.catalog.dropTempView("numbers_of_spark")


@pytest.mark.parametrize(
    "text", ["SELECT * FROM tides |> LIMIT 1", "TABLE tides |> LIMIT 1", "FROM tides |> SET x = 2"]
)
def test_pipes_on_a_lance_table_are_refused_with_what_to_write(spark: SparkSession, lake: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be parsed: .*SELECT … in place of pipes \(\|>\).*create_view"):
        sql(spark, text, namespace=lake)
    with pytest.raises(InvalidInput, match="cannot be parsed"):
        sql(spark, text.replace("tides", f"lance.`{lake}/tides.lance`"))


@pytest.mark.parametrize(
    "clause", ["@20260131000000000", "@v", " TIMESTAMP AS OF (current_date())", " VERSION AS OF -1"]
)
def test_a_version_in_the_words_of_another_library_reaches_it(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, clause: str
) -> None:
    query, given = f"SELECT * FROM other.of_delta{clause}", list[str]()
    monkeypatch.setattr(spark, "sql", given.append)
    sql(spark, query, namespace=lake)
    sql(spark, query)
    assert given == [query, query]
    with pytest.raises(InvalidInput):
        sql(spark, f"SELECT * FROM tides{clause}", namespace=lake)


@pytest.mark.parametrize("change", ["DELETE FROM of_delta", "UPDATE of_delta SET id = 0"])
def test_the_rows_of_a_lance_table_are_handed_to_another_library(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    given: list[tuple[str, list[Any]]] = []

    nothing = spark.range(0)

    def changed(query: str, **frames: DataFrame) -> DataFrame:
        given.append((query, [row.x for frame in frames.values() for row in frame.collect()]))
        return nothing

    monkeypatch.setattr(spark, "sql", changed)
    sql(spark, f"{change} WHERE id IN (SELECT x FROM tides WHERE x > 0)", namespace=lake)
    assert given == [(f"{change} WHERE id IN (SELECT x FROM {{t0}} AS `tides` WHERE x > 0)", [1])]
