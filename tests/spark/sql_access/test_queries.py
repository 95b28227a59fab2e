"""`sql`: queries read what they need of Lance tables, and mean what they mean to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, ReferenceNotFound, UnsupportedFeature, VersionNotFound
from lance_ops.spark import sql, use_namespace
from lance_ops.spark.sql_access import queries
from lance_ops.spark.table_query import TableQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A namespace of two tables: 100 flights in four fragments, and two planes."""
    flights = {
        "id": pa.array(range(100), pa.int64()),
        "delay": pa.array([i % 7 for i in range(100)], pa.int32()),
        "ratio": pa.array([i / 10 for i in range(100)], pa.float32()),
        "tail": [f"n{i % 5}" for i in range(100)],
        "day": pa.array(range(100), pa.date32()),
        "at": pa.array([i * 3_600_000_000 for i in range(100)], pa.timestamp("us", "UTC")),
    }
    write_dataset(pa.table(flights), tmp_path / "flights.lance", max_rows_per_file=25)
    write_dataset(pa.table({"tail": ["n1", "n2"], "seats": [100, 200]}), tmp_path / "planes.lance")
    use_namespace(spark, tmp_path)
    yield tmp_path
    use_namespace(spark, None)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is read of each table: its name, version, columns, filter and limit."""
    seen: list[tuple[Any, ...]] = []
    load = TableQuery.load

    def loading(self: TableQuery) -> Any:
        predicate = None if self.predicate is None else self.predicate.to_sql()
        seen.append((Path(self.snapshot.uri).stem, self.snapshot.version, self.columns, predicate, self.num_rows))
        return load(self)

    monkeypatch.setattr(TableQuery, "load", loading)
    return seen


def rows(spark: SparkSession, text: str, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in sql(spark, text, **options).collect()]


def test_columns_conditions_and_limits_are_pushed(spark: SparkSession, lake: Path, loads: list[Any]) -> None:
    path = lake / "flights.lance"
    assert rows(spark, f"SELECT id FROM lance.`{path}` WHERE delay = 3 AND tail LIKE 'n1%'") == [(31,), (66,)]
    assert loads.pop() == ("flights", 1, ("id", "delay", "tail"), "delay = 3 AND starts_with(tail, 'n1')", None)
    assert rows(spark, "SELECT * FROM flights WHERE id >= 20 AND day < '1970-02-01' LIMIT 3")[0][0] == 20
    assert loads.pop() == ("flights", 1, None, "id >= 20 AND day < DATE '1970-02-01'", 3)
    assert rows(spark, "SELECT count(*) FROM flights") == [(100,)]
    assert loads.pop() == ("flights", 1, ("_rowaddr",), None, None)


def test_joins_subqueries_and_common_table_expressions(spark: SparkSession, lake: Path, loads: list[Any]) -> None:
    text = """
        WITH late AS (SELECT *, tail AS t FROM flights f WHERE f.delay > 5),  -- {not a field}
             big AS (SELECT tail FROM planes WHERE seats >= 200)
        SELECT late.id FROM late JOIN big ON late.tail = big.tail
        WHERE late.t = 'n2' AND late.id IN (SELECT id + 0 FROM flights WHERE ratio < 5.0) ORDER BY late.id
    """
    assert rows(spark, text) == [(27,)]
    assert loads == [
        ("flights", 1, ("id", "delay", "ratio", "tail"), "delay > 5 AND tail = 'n2'", None),
        ("planes", 1, None, "seats >= 200", None),
        ("flights", 1, ("id", "ratio"), "ratio < 5.0", None),
    ]


def test_what_only_spark_understands_is_left_to_spark(spark: SparkSession, lake: Path, loads: list[Any]) -> None:
    # 0.1 is no float, and Spark compares as doubles: id 1, whose ratio is a little more, is among them.
    assert rows(spark, "SELECT min(id) FROM flights WHERE ratio > 0.1") == [(1,)]
    assert rows(spark, "SELECT id FROM flights WHERE id / 2 = 1.5 AND tail > uuid()") == [(3,)]
    assert [load[3] for load in loads] == [None, None]


def test_texts_are_those_that_spark_reads(spark: SparkSession, lake: Path, loads: list[Any]) -> None:
    assert rows(spark, "SELECT id FROM flights WHERE tail = 'n\\1' AND id = 1") == [(1,)]
    assert rows(spark, "SELECT id FROM flights WHERE tail > concat('n', '3') AND id < 5") == [(4,)]
    assert rows(spark, "SELECT id FROM flights WHERE tail = 'it''s {x}'") == []
    assert [load[3] for load in loads] == ["tail = 'n1' AND id = 1", "tail > 'n3' AND id < 5", "tail = 'it''s {x}'"]


def test_a_hint_may_name_a_table(spark: SparkSession, lake: Path) -> None:
    text = "/*+ BROADCAST(planes) */ flights.id, seats FROM flights JOIN planes ON flights.tail = planes.tail"
    assert len(rows(spark, f"SELECT {text} WHERE id < 5")) == 2
    assert len(rows(spark, f"WITH few AS (SELECT * FROM flights WHERE id < 5) SELECT {text}")) == 40


def test_a_sampled_table_keeps_its_name(spark: SparkSession, lake: Path) -> None:
    text = "SELECT flights.id FROM flights TABLESAMPLE (100 PERCENT) REPEATABLE (7) WHERE flights.id = 3"
    assert rows(spark, text) == [(3,)]


def test_the_rows_of_an_inner_query_are_those_of_all_its_columns(spark: SparkSession, lake: Path) -> None:
    text = "SELECT sum(delay) FROM (SELECT * FROM flights ORDER BY 1 DESC LIMIT 2)"
    assert rows(spark, text) == [(98 % 7 + 99 % 7,)]


def test_no_row_is_read_for_a_limit_of_none(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableQuery, "_planned", None)
    found = sql(spark, "SELECT id, tail FROM flights LIMIT 0")
    assert (found.collect(), found.columns) == ([], ["id", "tail"])


def test_names_in_double_quotes_are_refused_where_the_session_has_them(spark: SparkSession, lake: Path) -> None:
    assert rows(spark, 'SELECT id FROM flights WHERE tail = "n1" LIMIT 1')
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        for text in ("SELECT id FROM flights WHERE \"tail\" = 'n1'", 'DELETE FROM flights WHERE tail = "tail"'):
            with pytest.raises(UnsupportedFeature, match="names in double quotes"):
                sql(spark, text)
        assert rows(spark, 'SELECT 1 AS "one"') == [(1,)]
    finally:
        spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")


def test_an_outer_join_keeps_the_rows_that_a_condition_would_drop(spark: SparkSession, lake: Path) -> None:
    text = (
        "SELECT count(*) FROM flights f LEFT JOIN planes p ON f.tail = p.tail AND p.seats = 100 WHERE p.seats IS NULL"
    )
    assert rows(spark, text) == [(80,)]


def test_versions_by_number_moment_tag_and_branch(spark: SparkSession, lake: Path, loads: list[Any]) -> None:
    flights = LanceDataset(lake / "flights.lance")
    first = flights.versions()[0]["timestamp"]
    flights.tags.create("before", 1)
    flights.delete("id >= 10")
    trial = flights.create_branch("trial")
    trial.delete("id >= 5")
    count = "SELECT count(*) FROM "
    assert rows(spark, f"{count} flights") == [(10,)]
    for reference in (
        *(
            "flights VERSION AS OF 1",
            "flights FOR SYSTEM_VERSION AS OF 1 f",
            "flights@v1",
            "flights VERSION AS OF 'before'",
        ),
        *(f"flights TIMESTAMP AS OF '{first}' AS f", f"flights TIMESTAMP AS OF CAST('{first}' AS TIMESTAMP)"),
        f"lance.`{lake}/flights.lance`@v1 WHERE `{lake}/flights.lance`.id >= 0",
    ):
        assert rows(spark, count + reference) == [(100,)], reference
    assert rows(spark, f"{count} flights VERSION AS OF 'trial'") == [(5,)]
    both = "SELECT count(*) FROM flights@v1 a LEFT ANTI JOIN flights b ON a.id = b.id"
    assert rows(spark, both) == [(90,)]
    assert {load[1] for load in loads[-2:]} == {1, 2}
    with pytest.raises(VersionNotFound):
        sql(spark, "SELECT * FROM flights VERSION AS OF 77")
    with pytest.raises(ReferenceNotFound):
        sql(spark, "SELECT * FROM flights VERSION AS OF 'nope'")
    with pytest.raises(InvalidInput, match="v and a version's number"):
        sql(spark, "SELECT * FROM flights@3")


def test_a_query_keeps_its_version_and_rows_when_it_is_used_again(spark: SparkSession, lake: Path) -> None:
    frame = sql(spark, "SELECT id FROM flights WHERE delay = 0")
    LanceDataset(lake / "flights.lance").delete("id < 50")
    assert frame.where("id < 7").count() == 1
    assert frame.count() == 15
    sql(spark, "CREATE OR REPLACE TEMPORARY VIEW late AS SELECT id FROM flights WHERE delay = 6")
    assert spark.sql("SELECT count(*) FROM late").first()[0] == 7  # type: ignore[index]
    spark.catalog.dropTempView("late")


def test_other_statements_go_to_spark(spark: SparkSession, lake: Path, loads: list[Any]) -> None:
    assert rows(spark, "SELECT 1 + 1") == [(2,)]
    assert rows(spark, "SELECT * FROM VALUES (1, '{x}') AS t(a, b)") == [(1, "{x}")]
    assert sql(spark, "SHOW DATABASES").columns == ["namespace"]
    assert loads == []
    ((explained,),) = rows(spark, "EXPLAIN FORMATTED SELECT id FROM flights")
    assert loads == [("flights", 1, ("id",), None, None)]
    assert explained.startswith("== Physical Plan ==")
    assert "== lance flights.lance v1 ==\nLanceRead: projection=[id], num_fragments=" in explained
    for change in ("DELETE FROM flights WHERE id = 1", "UPDATE flights SET id = 1", "INSERT INTO flights SELECT 1"):
        with pytest.raises(UnsupportedFeature, match="EXPLAIN of a statement that changes a Lance table"):
            sql(spark, f"EXPLAIN {change}")
    with pytest.raises(UnsupportedFeature, match=r"REPAIR of a Lance table in SQL \(understood are SELECT"):
        sql(spark, f"REPAIR TABLE lance.`{lake}/flights.lance`")
    with pytest.raises(InvalidInput, match="cannot be parsed.*create_view"):
        sql(spark, f"SELECT FROM WHERE lance.`{lake}/flights.lance`")


def test_a_statement_that_fails_is_not_executed_to_improve_its_error(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_new_column(*_: Any) -> DataFrame:
        return spark.createDataFrame([], "new long")

    monkeypatch.setattr(queries, "_shape", with_a_new_column)
    target = lake / "target"
    target.mkdir()
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW target (id LONG) USING parquet OPTIONS (path '{target}')")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        sql(spark, "INSERT OVERWRITE target SELECT new FROM flights")
    assert [*target.iterdir()] == []
    spark.catalog.dropTempView("target")


def test_names_of_an_argument_come_before_those_of_the_session(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"x": [1]}), lake / "other" / "flights.lance")
    assert rows(spark, "SELECT * FROM flights", namespace=lake / "other") == [(1,)]
    assert rows(spark, "SELECT x FROM one", namespace={"one": str(lake / "other" / "flights.lance")}) == [(1,)]


def test_a_storage_option_reaches_the_tasks_and_no_plan(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"manifest_store": f"sqlite:///{tmp_path}/hunter2.db"}
    uri = str(tmp_path / "moved.lance")
    write_dataset(pa.table({"x": [1, 2]}), uri, storage_options=options)
    frame = sql(spark, f"SELECT x FROM lance.`{uri}` WHERE x = 2", storage_options=options)
    assert [row.x for row in frame.collect()] == [2]
    frame.explain(mode="extended")
    assert "hunter2" not in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="storage_options") as caught:
        sql(spark, "SELECT * FROM lance.`s3://key:hunter2@bucket/x`")
    assert "hunter2" not in str(caught.value)


def test_a_table_is_a_query(spark: SparkSession, lake: Path) -> None:
    planes = [("n1", 100), ("n2", 200)]
    for text in (
        "TABLE planes",
        f"TABLE lance.`{lake}/planes.lance` ORDER BY seats",
        "TABLE planes ORDER BY planes.seats LIMIT 5",
        "WITH q AS (TABLE planes) TABLE q",
        "TABLE planes VERSION AS OF 1",
    ):
        assert rows(spark, text) == planes, text
    assert rows(spark, "SELECT count(*) FROM (TABLE planes UNION ALL TABLE planes)") == [(4,)]
    assert rows(spark, "SELECT count(*) FROM flights WHERE tail IN (SELECT tail FROM (TABLE planes))") == [(40,)]
    sql(spark, "INSERT INTO planes TABLE planes")
    sql(spark, "CREATE TABLE copy USING lance AS TABLE planes")
    assert rows(spark, "TABLE copy") == planes * 2
    assert "== lance planes.lance v2 ==" in rows(spark, "EXPLAIN TABLE planes")[0][0]
    spark.range(2).createOrReplaceTempView("of_spark")
    assert rows(spark, "TABLE of_spark") == [(0,), (1,)]
