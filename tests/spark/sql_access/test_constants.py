"""`sql`: constants that Spark evaluates reach the table, and rows are those of a Parquet copy in the same session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import sql, use_namespace
from lance_ops.spark.sql_access.conditions import ConditionTranslation, EvaluatedConstants
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.spark.table_query import TableQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
CHANGES = (datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC))
MOMENTS = [
    FIRST + timedelta(microseconds=1),
    FIRST + timedelta(milliseconds=500),
    datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
    datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    *(FIRST + timedelta(hours=6 * i) for i in range(8)),
    *(day + timedelta(minutes=30 * i) for day in CHANGES for i in range(20)),
]


@pytest.fixture(scope="module")
def moments(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table `moments` with a column for each kind of moment, and the view `copied` of a Parquet copy."""
    folder = tmp_path_factory.mktemp("moments")
    micros = pa.array(MOMENTS, pa.timestamp("us", "UTC"))
    columns: dict[str, Any] = {"id": range(len(micros)), "day": micros.cast(pa.date32())}
    for unit in ("s", "ms", "us", "ns"):
        columns[f"at_{unit}"] = micros.cast(pa.timestamp(unit, "UTC"), safe=False)
        columns[f"local_{unit}"] = micros.cast(pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    table = pa.table(columns)
    write_dataset(table.append_column("none", pa.nulls(len(micros), pa.date32())), folder / "moments.lance")
    sql(spark, "SELECT * FROM moments", namespace=folder).write.parquet(f"{folder}/copied.parquet")
    spark.read.parquet(f"{folder}/copied.parquet").createOrReplaceTempView("copied")
    use_namespace(spark, folder)
    yield folder
    use_namespace(spark, None)
    spark.catalog.dropTempView("copied")


@pytest.fixture
def in_zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """What sets the session's time zone for one test."""
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    yield lambda zone: spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture
def filters(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, int | None]]:
    """The filter and the limit of each read of a table."""
    seen: list[tuple[str | None, int | None]] = []
    load = TableQuery.load

    def loading(self: TableQuery) -> DataFrame:
        seen.append((None if self.predicate is None else self.predicate.to_sql(), self.num_rows))
        return load(self)

    monkeypatch.setattr(TableQuery, "load", loading)
    return seen


def ids(spark: SparkSession, text: str) -> list[int]:
    return [row[0] for row in sql(spark, text).collect()]


OPERATORS = ("=", "<", "<=", ">", ">=", "<=>", "<>")
CONSTANTS = [
    "TIMESTAMP '2026-01-01 12:00:00'",
    "TIMESTAMP_NTZ '2026-01-01 12:00:00'",
    "TIMESTAMP '2026-01-01T12:00:00Z'",
    "CAST('2026-01-01 00:00:00.500' AS TIMESTAMP)",
    "DATE '2026-01-02'",
    "'2026-01-02'",
    "'2026-01-01T12:00:00Z'",
    "'2026-01-01T00:00:00.000001+00:00'",
    "'2026-03-08 02:30:00'",
    "'2026-03-29 02:30:00'",
    "'2026-11-01 01:30:00'",
    "TIMESTAMP '2026-10-25 02:30:00'",
    "TIMESTAMP '2026-11-01 00:30:00' + INTERVAL 1 HOUR",
    "date_sub(DATE '2026-11-02', 1)",
    "to_timestamp('01.11.2026', 'dd.MM.yyyy')",
    "make_date(2026, 3, 8)",
    "current_date() - 7",
    "now() - INTERVAL 1 DAY",
    "'rubbish'",
    "NULL",
]


@pytest.mark.parametrize(
    ("zone", "ansi"),
    [("UTC", "true"), ("America/New_York", "true"), ("Europe/Berlin", "true"), ("Europe/Berlin", "false")],
)
def test_rows_are_those_of_a_parquet_copy(
    spark: SparkSession, moments: Path, in_zone: Callable[[str], None], zone: str, ansi: str
) -> None:
    in_zone(zone)
    constants = CONSTANTS if ansi == "false" else [each for each in CONSTANTS if each != "'rubbish'"]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        tables = Tables(spark)
        stored = LanceDataset(moments / "moments.lance")
        rows_of = cache(lambda predicate: stored.to_table(["id"], predicate)["id"].to_pylist())
        for column in ("day", "none", "at_s", "at_us", "local_ms", "local_us"):
            listed = [
                *(f"{column} {operator} {constant}" for constant in constants for operator in OPERATORS),
                *(f"{column} IN ({constant})" for constant in constants),
                *(f"{column} BETWEEN '2026-01-01' AND {constant}" for constant in constants),
                *(f"NOT ({constant} > {column})" for constant in constants),
            ]
            evaluated = EvaluatedConstants(" OR ".join(listed), tables)
            rule = tables.case_rule
            translation = ConditionTranslation(
                stored.snapshot.schema, rule, in_utc=tables.in_utc, has_escapes=False, constants=evaluated
            )
            trees = [parse_expression(each) for each in listed]
            evaluated.evaluate(constant for tree in trees for constant in translation.constants_in(tree))
            found = [(each, translation.predicate(tree)) for each, tree in zip(listed, trees, strict=True)]
            pushed = {each: predicate.to_sql() for each, predicate in found if predicate is not None}
            assert len(pushed) > len(listed) / 3
            matched = ", ".join(f"CASE WHEN {each} THEN id END" for each in pushed)
            expected = zip(*spark.sql(f"SELECT {matched} FROM copied ORDER BY id").collect(), strict=True)
            for (condition, predicate), matches in zip(pushed.items(), expected, strict=True):
                rows = [match for match in matches if match is not None]
                assert rows_of(predicate) == rows, (condition, predicate)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


PUSHED = [
    ("at_us >= TIMESTAMP '2026-03-08 12:00:00'", "at_us >= '2026-03-08 16:00:00+00:00'"),
    ("at_us >= '2026-03-08'", "at_us >= '2026-03-08 05:00:00+00:00'"),
    ("at_s < DATE '2026-03-08'", "at_s < '2026-03-08 05:00:00+00:00'"),
    ("'2026-03-08T00:00:00Z' <= at_ms", "at_ms >= '2026-03-08 00:00:00+00:00'"),
    ("local_us >= TIMESTAMP_NTZ '2026-03-08 02:30:00'", "local_us >= TIMESTAMP(6) '2026-03-08 02:30:00'"),
    ("day >= date_sub(DATE '2026-03-09', 1)", "day >= DATE '2026-03-08'"),
    ("day >= TIMESTAMP '2026-03-07 12:00:00'", "day > DATE '2026-03-07'"),
    ("id < 2 + 3", "id < 5"),
]


@pytest.mark.parametrize(("condition", "predicate"), PUSHED)
def test_a_constant_that_spark_evaluates_is_pushed_with_its_limit(
    spark: SparkSession,
    moments: Path,
    in_zone: Callable[[str], None],
    filters: list[Any],
    condition: str,
    predicate: str,
) -> None:
    in_zone("America/New_York")
    expected = [row.id for row in spark.sql(f"SELECT id FROM copied WHERE {condition} ORDER BY id").collect()]
    assert sorted(ids(spark, f"SELECT id FROM moments WHERE {condition}")) == expected
    assert filters.pop()[0].startswith(predicate)
    assert len(ids(spark, f"SELECT id FROM moments WHERE {condition} LIMIT 2")) == 2
    assert filters.pop()[1] == 2


def test_all_constants_of_a_statement_are_one_query_without_a_job(
    spark: SparkSession, moments: Path, filters: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    spark_sql = Tables.spark_sql

    def recording(self: Tables, text: str, **frames: Any) -> DataFrame:
        texts.append(text)
        return spark_sql(self, text, **frames)

    monkeypatch.setattr(Tables, "spark_sql", recording)
    query = """
        SELECT a.id FROM moments a JOIN moments b ON a.id = b.id AND b.day >= make_date(2026, 11, 1)
        WHERE a.at_us >= TIMESTAMP '2026-11-01' + INTERVAL 1 HOUR
    """
    spark.sparkContext.setJobGroup("constants", "constants")
    try:
        sql(spark, query)
        assert spark.sparkContext.statusTracker().getJobIdsForGroup("constants") == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert texts[0].startswith("SELECT (")
    assert len(texts) == 2
    assert [predicate for predicate, _ in filters] == [
        "at_us >= '2026-11-01 01:00:00+00:00'",
        "day >= DATE '2026-11-01'",
    ]


def test_an_index_finds_the_rows_of_a_moment(spark: SparkSession, tmp_path: Path) -> None:
    at = pa.array([FIRST + timedelta(days=i) for i in range(100)], pa.timestamp("us", "UTC"))
    write_dataset(pa.table({"at": at}), tmp_path / "t.lance").create_scalar_index("at", "BTREE")
    text = "EXPLAIN SELECT at FROM t WHERE at >= TIMESTAMP '2026-02-01' AND at < '2026-02-02'"
    assert "ScalarIndexQuery" in sql(spark, text, namespace=tmp_path).collect()[0][0]


def test_parameters_of_any_type_are_pushed(spark: SparkSession, moments: Path, filters: list[Any]) -> None:
    found = sql(spark, "SELECT id FROM moments WHERE day = :day", {"day": date(2026, 3, 8)}).collect()
    assert len(found) == 20
    assert filters == [("day = DATE '2026-03-08'", None)]
    sql(spark, "SELECT id FROM moments WHERE day > date_sub(?, 1)", [date(2026, 3, 8)])
    assert filters.pop() == (None, None)


def test_what_the_clock_moves_is_a_lower_bound_that_a_later_query_may_use(
    spark: SparkSession, tmp_path: Path, filters: list[Any]
) -> None:
    today = datetime.now(UTC).date()
    days = pa.array([today + timedelta(days=i) for i in range(-20, 20)], pa.date32())
    write_dataset(pa.table({"day": days}), tmp_path / "t.lance")

    def read(condition: str) -> int:
        return len(sql(spark, f"SELECT day FROM t WHERE {condition} LIMIT 40", namespace=tmp_path).collect())

    assert read("day >= current_date() - 7") == 27
    assert filters.pop() == (f"day >= DATE '{today - timedelta(days=8)}'", None)
    assert read("day BETWEEN current_date() - 7 AND current_date()") == 8
    assert filters.pop() == (f"day >= DATE '{today - timedelta(days=8)}'", None)
    for condition, number in (
        ("day <= current_date()", 21),
        ("NOT (day >= current_date())", 20),
        ("day = current_date()", 1),
        ("day >= DATE '2026-01-01' + datediff(DATE '2026-01-01', current_date())", 40),
        ("day >= DATE 'today'", 20),
    ):
        assert read(condition) == number
        assert filters.pop() == (None, None), condition


@pytest.mark.parametrize("expression", ["uuid()", "CAST(rand() AS STRING)", "current_user()", "unknown_function('a')"])
def test_what_may_have_another_value_each_time_is_not_evaluated(spark: SparkSession, expression: str) -> None:
    constants = EvaluatedConstants(f"s = {expression}", Tables(spark))
    node = parse_expression(expression)
    constants.evaluate([node])
    assert constants.find(node) is None


def test_rows_of_a_computed_bound_are_replaced_deleted_and_counted(
    spark: SparkSession, tmp_path: Path, in_zone: Callable[[str], None]
) -> None:
    in_zone("Europe/Berlin")
    today = spark.sql("SELECT current_date() AS d").collect()[0].d
    days = [today + timedelta(days=i) for i in range(-10, 1)]
    at = [datetime(2026, 1, 1, i, tzinfo=UTC) for i in range(11)]
    table = pa.table({"day": pa.array(days, pa.date32()), "at": pa.array(at, pa.timestamp("us", "UTC"))})
    write_dataset(table, tmp_path / "t.lance")

    def run(text: str) -> list[Any]:
        return sql(spark, text, namespace=tmp_path, runner=InThreads()).collect()

    def stored() -> list[date]:
        return sorted(LanceDataset(tmp_path / "t.lance").to_table()["day"].to_pylist())

    run("INSERT INTO t REPLACE WHERE day >= current_date() - 7 SELECT current_date(), TIMESTAMP '2026-01-01 12:00:00'")
    assert stored() == [*days[:3], today]
    run(
        "INSERT INTO t REPLACE WHERE at >= TIMESTAMP '2026-01-01 12:00:00' "
        "SELECT current_date() - 1, TIMESTAMP '2026-01-01 13:00'"
    )
    assert stored() == [*days[:3], today - timedelta(days=1)]
    assert run("SHOW DUPLICATES IN t ON (day) WHERE at < '2026-01-01 03:00:00'")[0].num_keys == 0
    assert run("DELETE FROM t WHERE at >= '2026-01-01 02:00' AND day <= current_date()")[0][0] == 3
    assert stored() == days[:1]
    with pytest.raises(UnsupportedFeature, match="REPLACE WHERE day > date_sub"):
        run("INSERT INTO t REPLACE WHERE day > date_sub(current_date(), CAST(rand() AS INT)) SELECT * FROM t")


def test_where_spark_casts_the_column_it_compares_alone(
    spark: SparkSession, tmp_path: Path, filters: list[Any], in_zone: Callable[[str], None]
) -> None:
    in_zone("UTC")
    cents = [Decimal("12.40"), Decimal("11.60"), Decimal("12.00")]
    table = pa.table(
        {
            "text": ["2026-01-01T09:00:00", "2026-01-01", "2026-01-01 11:00:00"],
            "cents": pa.array(cents, pa.decimal128(10, 2)),
            "whole": pa.array([12, 13, 14], pa.decimal128(38, 0)),
            "current_date": pa.array([date(1999, 1, 1), date(2000, 1, 1), None]),
            "day": pa.array([date(1999, 6, 1)] * 3),
        }
    )
    write_dataset(table, tmp_path / "t.lance")
    pq.write_table(table, tmp_path / "t.parquet")
    spark.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("copy_of_t")
    for condition in (
        "text < TIMESTAMP '2026-01-01 10:00:00'",
        "text = TIMESTAMP '2026-01-01 00:00:00'",
        "text = CAST('2026-01-01 00:00:00' AS TIMESTAMP)",
        "text IN (TIMESTAMP '2026-01-01 00:00:00')",
        "cents > CAST(12 AS DECIMAL(38, 0))",
        "cents = CAST(12 AS DECIMAL(38, 0))",
        "whole > 12.5",
        "day > current_date",
    ):
        expected = spark.sql(f"SELECT text FROM copy_of_t WHERE {condition} ORDER BY text").collect()
        found = sql(spark, f"SELECT text FROM t WHERE {condition} ORDER BY text LIMIT 9", namespace=tmp_path).collect()
        assert found == expected, condition
        assert filters.pop() == (None, None), condition
    spark.catalog.dropTempView("copy_of_t")


@pytest.mark.parametrize(
    ("condition", "args"),
    [
        ("day >= add_months(DATE '2026-01-01', month(current_date()) - 1)", {}),
        ("day >= CAST(:since AS DATE)", {"since": "today"}),
        ("at <= CAST(:until AS TIMESTAMP)", {"until": "now"}),
        ("at < '08:00:00'", {}),
        ("at BETWEEN '06:00' AND '14:00:00'", {}),
        ("at < CAST(:until AS TIMESTAMP)", {"until": "T8:30"}),
        ("at > to_timestamp(concat('8', ':00'))", {}),
    ],
)
def test_no_bound_is_pushed_that_a_later_query_may_need_lower(
    spark: SparkSession, tmp_path: Path, filters: list[Any], condition: str, args: dict[str, Any]
) -> None:
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    write_dataset(pa.table({"day": [date(2026, 1, 1)], "at": at}), tmp_path / "t.lance")
    sql(spark, f"SELECT day FROM t WHERE {condition}", args, namespace=tmp_path).collect()
    assert filters.pop() == (None, None)


@pytest.mark.parametrize(
    ("condition", "is_pushed"),
    [
        ("key = concat(:tenant, ':', :id)", True),
        ("key IN (upper('t1'), '12' || ':30')", True),
        ("NOT key = 'it''s 8:30'", True),
        ("key = CAST('8:30' AS TIMESTAMP)", False),
        ("key = date_format('8:30', 'yyyy')", False),
        ("at > concat(:id, ':30')", False),
    ],
)
def test_a_text_that_may_be_a_time_of_day_is_one_only_where_it_is_cast(
    spark: SparkSession, tmp_path: Path, filters: list[Any], condition: str, is_pushed: bool
) -> None:
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    write_dataset(pa.table({"key": ["a:7", "12:30"], "at": at}), tmp_path / "t.lance")
    sql(spark, f"SELECT key FROM t WHERE {condition}", {"tenant": "a", "id": "7"}, namespace=tmp_path)
    assert (filters.pop()[0] is not None) is is_pushed


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_moment_in_a_list_is_compared_alike_as_a_literal_and_as_a_parameter(
    spark: SparkSession, moments: Path, in_zone: Callable[[str], None], filters: list[Any], ansi: str
) -> None:
    in_zone("UTC")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for text in ("2026-01-01T12:00:00", "2026-01-01 12:00:00"):
            expected = spark.sql(f"SELECT id FROM copied WHERE local_us IN ('{text}')").collect()
            read = set()
            for value, args in ((f"'{text}'", None), (":a", {"a": text})):
                found = sql(spark, f"SELECT id FROM moments WHERE local_us IN ({value})", args).collect()
                assert (found, len(found) > 0) == (expected, ansi == "true" or "T" not in text)
                read.add(filters.pop())
            assert len(read) == 1
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


OF_A_COLUMN = [
    "SELECT t.id FROM t JOIN u ON t.id = u.id WHERE t.day >= current_date",
    "SELECT t.id FROM u JOIN t ON t.id = u.id AND t.day >= Current_Date",
    "SELECT t.id FROM t, LATERAL (SELECT u.current_date FROM u WHERE u.id = t.id) WHERE t.day >= current_date",
    "SELECT id FROM t LATERAL VIEW explode(array(DATE '1999-01-01')) AS current_date WHERE t.day >= current_date",
    "SELECT id FROM (SELECT id, day, since AS current_date FROM t) q WHERE q.day >= current_date",
    "WITH q AS (SELECT id, day, since AS current_date FROM t) SELECT id FROM q WHERE day >= current_date",
]
OF_THE_CLOCK = [
    "SELECT id FROM t WHERE day >= current_date",
    "SELECT t.id FROM t JOIN u ON t.id = u.id WHERE t.day >= current_date()",
    "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND t.day >= current_date)",
]


@pytest.mark.parametrize("text", OF_A_COLUMN + OF_THE_CLOCK)
def test_a_word_of_the_clock_is_the_column_of_any_source_that_has_it(
    spark: SparkSession, tmp_path: Path, filters: list[Any], text: str
) -> None:
    old = [date(1999, 1, 1), date(2001, 1, 1)]
    tables = {
        "t": pa.table({"id": [1, 2], "day": [date(2000, 1, 1)] * 2, "since": old}),
        "u": pa.table({"id": [1, 2], "current_date": old}),
    }
    for name, table in tables.items():
        write_dataset(table, tmp_path / f"{name}.lance")
        spark.createDataFrame(table).createOrReplaceTempView(name)
    expected = spark.sql(text).collect()
    for name in tables:
        spark.catalog.dropTempView(name)
    assert sql(spark, text, namespace=tmp_path).collect() == expected
    pushed = [predicate for predicate, _ in filters if predicate is not None]
    assert bool(pushed) is (text in OF_THE_CLOCK)
    assert bool(expected) is (text in OF_A_COLUMN)
