"""`sql`: statements that make tables and change them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    DatasetNotFound,
    InvalidFilter,
    InvalidInput,
    ReferenceNotFound,
    SchemaMismatch,
    UnsupportedFeature,
)
from lance_ops.spark import OnSpark, create_view, sql
from lance_ops.spark.sql_access.table_definition import creation
from lance_ops.spark.sql_access.table_references import Tables
from tests.pickling_runner import PicklingRunner
from tests.spark.sql_access.shown_rows import first, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_column_is_computed_from_others_when_it_is_added(run: Any, lake: Path) -> None:
    run("ALTER TABLE numbers ADD COLUMN total AS (id * 2 + x)")
    assert LanceDataset(lake / "numbers.lance").to_table()["total"].to_pylist() == [3 * row for row in range(10)]
    run("ALTER TABLE numbers ADD COLUMN shown AS (concat(format_number(id, 1), s))")
    assert LanceDataset(lake / "numbers.lance").to_table()["shown"].to_pylist()[:2] == ["0.0a", "1.0b"]
    with pytest.raises(AnalysisException, match="nope"):
        run("ALTER TABLE numbers ADD COLUMN other AS (nope + 1)")


def test_a_computed_column_reads_fields_of_structs(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"id": [1], "city": ["no"], "place": [{"city": "Rome"}]}), lake / "places.lance")
    run("ALTER TABLE places ADD COLUMN town AS (upper(place.city))")
    assert stored(lake, "places") == [(1, "no", {"city": "Rome"}, "ROME")]


@pytest.mark.parametrize(
    "change", ["ADD COLUMN y FROM (SELECT _rowaddr, x + 1 AS y FROM numbers)", "ADD COLUMN y AS (x + 1)"]
)
def test_values_by_row_are_of_the_version_that_gets_them(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    opened, uri = Tables.open, lake / "numbers.lance"

    def open_and_compact(self: Tables, *args: Any) -> Any:
        made = opened(self, *args)
        if not self.pinned:
            LanceDataset(uri).optimize.compact_files()
        return made

    monkeypatch.setattr(Tables, "open", open_and_compact)
    run(f"ALTER TABLE numbers {change}")
    assert LanceDataset(uri).to_table(filter="y = x + 1").num_rows == 10


@pytest.mark.parametrize("words", ["TYPE BIGINT, s STRING", "TYPE BIGINT NOT NULL", "TYPE BIGINT COMMENT 'c'"])
def test_a_column_gets_one_type_in_a_statement(run: Any, lake: Path, words: str) -> None:
    with pytest.raises(InvalidInput, match="give one type"):
        run(f"ALTER TABLE numbers ALTER COLUMN x {words}")
    assert LanceDataset(lake / "numbers.lance").version == 1


def test_conditions_mean_what_they_mean_to_spark(run: Any, lake: Path) -> None:
    floats = pa.table({"id": range(4), "f": pa.array([0.1, 0.5, None, float("nan")], pa.float32())})
    write_dataset(floats, lake / "floats.lance")
    for condition in (
        "f > 0.1",
        "f = 0.5",
        "f <= 0.1",
        "NOT (f > 0.3)",
        "id % 2 = 1",
        "id / 2 = 0.5",
        "f IS NULL",
        "id NOT BETWEEN 1 AND 2",
    ):
        expected = run(f"SELECT count(*) AS n FROM floats WHERE {condition}").collect()[0].n
        run("CREATE OR REPLACE TABLE copy USING lance AS SELECT * FROM floats")
        assert first(run(f"DELETE FROM copy WHERE {condition}")) == {"num_affected_rows": expected}, condition


@pytest.mark.parametrize(
    "condition", ["id BETWEEN SYMMETRIC 9 AND 1", "id NOT BETWEEN SYMMETRIC 9 AND 1", "id IN [SELECT id FROM numbers]"]
)
def test_a_condition_that_spark_does_not_parse_deletes_nothing(run: Any, lake: Path, condition: str) -> None:
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        run(f"DELETE FROM numbers WHERE {condition}")
    assert LanceDataset(lake / "numbers.lance").version == 1


def test_tables_are_created(run: Any, lake: Path) -> None:
    run("CREATE TABLE made USING lance AS SELECT id, s FROM numbers WHERE id < 2")
    assert stored(lake, "made") == [(0, "a"), (1, "b")]
    with pytest.raises(DatasetAlreadyExists, match="CREATE OR REPLACE TABLE"):
        run("CREATE TABLE made USING lance AS SELECT 1 AS y")
    run("CREATE TABLE IF NOT EXISTS made USING lance AS SELECT 1 AS y")
    assert LanceDataset(lake / "made.lance").version == 1
    with pytest.raises(InvalidInput, match="IF NOT EXISTS keeps it"):
        run("CREATE OR REPLACE TABLE IF NOT EXISTS made USING lance AS SELECT 1 AS y")
    assert LanceDataset(lake / "made.lance").version == 1
    run("CREATE OR REPLACE TABLE made AS SELECT 1L AS y")
    assert stored(lake, "made") == [(1,)]
    run(
        f"CREATE TABLE lance.`{lake}/typed.lance` (id BIGINT NOT NULL, v ARRAY<FLOAT>, s STRUCT<a: INT>) USING lance "
        "TBLPROPERTIES ('v.arrow.fixed-size-list.size' = 4, data_storage_version = '2.1')"
    )
    typed = LanceDataset(lake / "typed.lance")
    assert typed.schema.field("v").type == pa.list_(pa.float32(), 4)
    assert (typed.data_storage_version, typed.count_rows()) == ("2.1", 0)
    assert [field.nullable for field in typed.schema] == [False, True, True]
    assert typed.version == 1
    run(f"CREATE OR REPLACE TABLE lance.`{lake}/typed.lance` (id BIGINT, v ARRAY<FLOAT> NOT NULL)")
    replaced = LanceDataset(lake / "typed.lance")
    assert [(field.name, field.nullable) for field in replaced.schema] == [("id", True), ("v", False)]
    assert (replaced.version, replaced.schema.field("v").type) == (2, pa.list_(pa.float32()))
    with pytest.raises(SchemaMismatch, match="'v'"):
        run(f"INSERT INTO lance.`{lake}/typed.lance` VALUES (1, NULL)")
    for text in ("STRUCT<a: INT NOT NULL>", "ARRAY<STRUCT<a: INT NOT NULL>>", "MAP<INT, STRUCT<a: INT NOT NULL>>"):
        with pytest.raises(UnsupportedFeature, match=r"NOT NULL of a struct's field, s\.(element\.|value\.)?a"):
            run(f"CREATE TABLE lance.`{lake}/deep.lance` (s {text})")
        with pytest.raises(UnsupportedFeature, match="NOT NULL of a struct's field, t"):
            run(f"ALTER TABLE numbers ADD COLUMNS (t {text})")
    for key in ("mode", "uri", "frame", "storage_options", "path"):
        with pytest.raises(InvalidInput, match=f"option '{key}'"):
            run(f"CREATE TABLE lance.`{lake}/deep.lance` USING lance OPTIONS ('{key}' = 'x') AS SELECT 1 AS x")
    run(f"CREATE TABLE lance.`{lake}/deep.lance` (x INT) USING lance TBLPROPERTIES ('CASE_SENSITIVE' = 'true')")
    with pytest.raises(InvalidInput, match="columns with their types, or AS"):
        run("CREATE TABLE empty USING lance")


@pytest.mark.parametrize("columns", ["(x BIGINT)", "USING lance AS SELECT 1L AS x"])
def test_a_table_that_another_session_creates_meanwhile_is_kept(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    write_dataset(pa.table({"x": [7]}), str(lake / "late.lance"))
    monkeypatch.setattr(creation, "_is_there", lambda *_: False)
    run(f"CREATE TABLE IF NOT EXISTS lance.`{lake}/late.lance` {columns}")
    assert LanceDataset(lake / "late.lance").to_table()["x"].to_pylist() == [7]
    with pytest.raises(DatasetAlreadyExists, match="CREATE OR REPLACE TABLE writes a new version"):
        run(f"CREATE TABLE lance.`{lake}/late.lance` {columns}")


def test_columns_are_added_renamed_cast_and_dropped(run: Any, lake: Path) -> None:
    run("ALTER TABLE numbers ADD COLUMNS (a INT, b STRUCT<c: STRING>)")
    run("ALTER TABLE numbers ADD COLUMN d DATE")
    run("ALTER TABLE numbers RENAME COLUMN a TO renamed")
    run("ALTER TABLE numbers ALTER COLUMN x TYPE BIGINT")
    run("ALTER TABLE numbers DROP COLUMNS (d, s)")
    run("ALTER TABLE numbers DROP COLUMN b")
    schema = LanceDataset(lake / "numbers.lance").schema
    assert schema.names == ["id", "x", "renamed"]
    assert schema.field("x").type == pa.int64()
    assert [tuple(row) for row in run("DESCRIBE TABLE numbers").collect()] == (
        [("id", "bigint", None), ("x", "bigint", None), ("renamed", "int", None)]
    )
    with pytest.raises(InvalidInput, match="one of ADD COLUMNS"):
        run("ALTER TABLE numbers CLUSTER BY (x)")


def test_a_mistake_raises_an_error_that_names_it(run: Any, lake: Path, spark: SparkSession) -> None:
    for text, kind, message in (
        ("VACUUM nope", InvalidInput, "nope is no Lance table"),
        ("RESTORE TABLE nope TO VERSION AS OF 1", InvalidInput, "nope is no Lance table"),
        ("DESC HISTORY nope", InvalidInput, "nope is no Lance table"),
        ("CREATE TABLE other LIKE numbers", UnsupportedFeature, "LIKE a Lance table .write USING lance AS SELECT"),
        ("SHOW PARTITIONS numbers", UnsupportedFeature, "SHOW of a Lance table .*SHOW COLUMNS"),
        ("DROP TABLE numbers", UnsupportedFeature, "DROP of a Lance table"),
        (
            "ALTER TABLE numbers ADD COLUMNS (a INT, b INT NOT NULL)",
            InvalidInput,
            "ADD COLUMN b NOT NULL: .*SET NOT NULL",
        ),
        ("SELECT id FROM numbers VERSION AS OF 'nope'", ReferenceNotFound, "has no tag and no branch 'nope'"),
        ("MERGE WITH SCHEMA EVOLUTION INTO numbers USING u ON true", UnsupportedFeature, "ADD COLUMNS"),
        ("DELETE FROM numbers WHERE x = 1; DELETE FROM numbers", InvalidInput, "several statements: execute each by"),
        ("UPDATE numbers SET x = 1; DELETE FROM numbers", InvalidInput, "several statements: execute each by"),
        ("SELECT nope FROM numbers", AnalysisException, r"Did you mean .*`(id|x|s)`"),
        ("SELECT * FROM nope", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
    ):
        with pytest.raises(kind, match=message):
            run(text)
    uri = str(lake / "numbers.lance")
    with pytest.raises(DatasetNotFound):
        create_view(spark, "v", f"{uri}.old")
    with pytest.raises(InvalidFilter, match="nope"):
        create_view(spark, "v", uri, filter="nope = 1")
    keys = spark.range(3)
    with pytest.raises(SchemaMismatch, match="the DataFrame has no column x: it has id"):
        LanceDataset(uri).delete_by_keys(keys, "x", runner=OnSpark(spark))
    with pytest.raises(SchemaMismatch, match="'id' is int64 in the table and string in the data"):
        LanceDataset(uri).delete_by_keys(keys.selectExpr("string(id) AS id"), "id", runner=OnSpark(spark))
    assert LanceDataset(uri).version == 1


def test_columns_are_named_by_the_session_s_case_rule(run: Any, lake: Path, spark: SparkSession) -> None:
    run("ALTER TABLE numbers RENAME COLUMN X TO Count")
    run("ALTER TABLE numbers RENAME COLUMN COUNT TO count")
    run("ALTER TABLE numbers ALTER COLUMN `COUNT` TYPE BIGINT")
    run("CREATE INDEX by_id ON numbers (ID)")
    run("OPTIMIZE numbers SORT BY (S, ID)")
    opened = LanceDataset(lake / "numbers.lance")
    assert opened.schema.field("count").type == pa.int64()
    assert opened.to_table()["id"].to_pylist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    for text in (
        "ADD COLUMN ID INT",
        "ADD COLUMNS (a INT, iD INT)",
        "ADD COLUMN Id AS (1)",
        "RENAME COLUMN count TO ID",
    ):
        with pytest.raises(InvalidInput, match="has a column 'id'"):
            run(f"ALTER TABLE numbers {text}")
    run("ALTER TABLE numbers DROP COLUMN IF EXISTS (nope, COUNT)")
    run("ALTER TABLE numbers DROP COLUMNS IF EXISTS nope")
    assert LanceDataset(lake / "numbers.lance").version == opened.version + 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InvalidInput, match="no column 'ID'"):
            run("ALTER TABLE numbers DROP COLUMN ID")
        run("ALTER TABLE numbers ADD COLUMN ID INT")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
    assert LanceDataset(lake / "numbers.lance").schema.names == ["id", "s", "ID"]


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN y AS (x)",
        "RENAME COLUMN x TO y",
        "ALTER COLUMN x SET NOT NULL",
        "ALTER COLUMN x DROP NOT NULL",
        "DROP TAG kept",
        "CREATE TAG other",
    ],
)
def test_a_change_with_more_words_than_it_has_changes_nothing(run: Any, lake: Path, change: str) -> None:
    LanceDataset(lake / "numbers.lance").tags.create("kept", 1)
    with pytest.raises(InvalidInput, match="the end of the statement is needed in place of 'nonsense'"):
        run(f"ALTER TABLE numbers {change} nonsense")
    after = LanceDataset(lake / "numbers.lance")
    assert (after.version, after.schema.names, [*after.tags.list()]) == (1, ["id", "x", "s"], ["kept"])


def test_a_change_runs_in_tasks_of_spark(spark: SparkSession, lake: Path) -> None:
    descriptions = re.compile(r"lance: delete .*numbers")
    assert first(sql(spark, "DELETE FROM numbers WHERE x % 3 = 0")) == {"num_affected_rows": 4}
    by_key = "DELETE FROM numbers WHERE id IN (SELECT id + 1 FROM numbers WHERE id IN (1, 4))"
    assert first(sql(spark, by_key)) == {"num_affected_rows": 2}
    assert [row[0] for row in stored(lake)] == [1, 4, 7, 8]
    by_query = "UPDATE numbers n SET x = -x WHERE id IN (SELECT id + 3 FROM numbers WHERE id < 5)"
    assert first(sql(spark, by_query)) == {"num_affected_rows": 2}
    assert [row[:2] for row in stored(lake)] == [(1, 1), (4, -4), (7, -7), (8, 8)]
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    shown = [str(jobs.apply(i).description()) for i in range(jobs.size())]
    assert any(descriptions.search(text) for text in shown), shown


def test_tasks_travel_to_the_runner_that_is_given(spark: SparkSession, lake: Path) -> None:
    runner = PicklingRunner()
    sql(spark, "UPDATE numbers SET x = 0 WHERE id = 1", runner=runner)
    assert runner.jobs[0][0] == "update"
    assert runner.task_bytes


def test_a_table_is_not_dropped_in_silence(run: Any, lake: Path) -> None:
    for text in ("DROP TABLE IF EXISTS numbers", "DROP TABLE numbers", f"DROP TABLE lance.`{lake}/numbers.lance`"):
        with pytest.raises(UnsupportedFeature, match=r"lance_ops\.LanceDataset\.drop\('.*numbers\.lance'\)"):
            run(text)
    run("DROP TABLE IF EXISTS nothing_like_it")
    assert len(stored(lake)) == 10


def test_decimals_that_are_inserted_or_assigned_become_the_nearest_doubles(run: Any, lake: Path) -> None:
    run("CREATE TABLE prices (id BIGINT, f DOUBLE, d DECIMAL(10, 2)) USING lance")
    run("INSERT INTO prices VALUES (1, -2.55, -2.55), (2, 9999.9, 9999.9)")
    assert [row[1] for row in stored(lake, "prices")] == [-2.55, 9999.9]
    run("UPDATE prices SET f = 0")
    run("UPDATE prices SET f = d")
    assert [row[1] for row in stored(lake, "prices")] == [-2.55, 9999.9]


def test_dates_and_clocks_become_moments_by_the_sessions_time_zone(spark: SparkSession, run: Any, lake: Path) -> None:
    run("CREATE TABLE events (id BIGINT, at TIMESTAMP, clock TIMESTAMP_NTZ) USING lance")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        run("INSERT INTO events VALUES (1, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00')")
        run("INSERT INTO events (id, at) VALUES (2, TIMESTAMP_NTZ '2026-01-01 00:00:00')")
        run(
            "MERGE INTO events USING (SELECT 3L AS id, DATE '2026-01-01' AS at) AS n ON events.id = n.id "
            "WHEN NOT MATCHED THEN INSERT (id, at) VALUES (n.id, n.at)"
        )
        run("INSERT INTO events (id) VALUES (4)")
        run("UPDATE events SET at = DATE '2026-01-01' WHERE at IS NULL AND clock IS NULL AND id > 3")
        run("UPDATE events SET at = NULL WHERE id = 9")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    midnight = datetime(2026, 1, 1, 5, tzinfo=UTC)
    assert [row[1] for row in stored(lake, "events")] == [midnight] * 4
    assert stored(lake, "events")[0][2] == datetime(2026, 1, 1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("v VARCHAR(3)", r"column v of type varchar\(3\) \(declare it STRING\)"),
        ("v CHAR(3)", r"column v of type char\(3\)"),
        ("v STRING COLLATE UTF8_LCASE", "a collation of column v"),
    ],
)
def test_a_type_that_a_table_cannot_keep_is_refused_with_its_column(run: Any, columns: str, message: str) -> None:
    with pytest.raises(UnsupportedFeature, match=message):
        run(f"CREATE TABLE kept (id INT, {columns}) USING lance")
    with pytest.raises(UnsupportedFeature, match=message):
        run(f"ALTER TABLE numbers ADD COLUMNS ({columns})")


def test_names_that_differ_only_in_case_make_a_table_where_case_counts(spark: SparkSession, run: Any) -> None:
    for text in ("(a INT, A INT) USING lance", "USING lance AS SELECT 1 AS a, 2 AS A"):
        with pytest.raises(SchemaMismatch, match="columns a, A differ only in case"):
            run(f"CREATE TABLE twins {text}")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        run("CREATE TABLE twins (a INT, A INT) USING lance")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


@pytest.mark.parametrize(
    ("column", "key"),
    [
        ("day", "TIMESTAMP '2026-01-01 05:00:00'"),
        ("day", "TIMESTAMP_NTZ '2026-01-01 05:00:00'"),
        ("f", "0.1D"),
        ("f", "0.1BD"),
    ],
)
def test_a_key_that_a_cast_would_change_deletes_no_row(run: Any, lake: Path, column: str, key: str) -> None:
    run("CREATE TABLE days (day DATE, f FLOAT) USING lance")
    run("INSERT INTO days VALUES (DATE '2026-01-01', float(0.1))")
    merge = f"MERGE INTO days USING (SELECT {key} AS k) AS q ON days.{column} = q.k"
    for text in (f"DELETE FROM days WHERE {column} IN (SELECT {key} AS k)", f"{merge} WHEN MATCHED THEN DELETE"):
        assert first(run(text))["num_affected_rows"] == 0
    assert len(stored(lake, "days")) == 1
    assert first(run(f"{merge} WHEN NOT MATCHED BY SOURCE THEN DELETE"))["num_affected_rows"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UPDATE t SET s.a = 1", r"for s.a alone .*named_struct\('a', …\) AS s"),
        ("MERGE INTO t USING (SELECT 1L AS id) x ON t.id = x.id WHEN MATCHED THEN UPDATE SET s.a = 5", "for s.a alone"),
        (
            "MERGE INTO t USING (SELECT 9L id) x ON t.id = x.id WHEN NOT MATCHED THEN INSERT (id, s.a) VALUES (9, 5)",
            "s.a",
        ),
        ("INSERT INTO t VALUES (4, DEFAULT, NULL)", "DEFAULT as a value .*write NULL, or leave the column out"),
        ("UPDATE t SET a = DEFAULT WHERE id = 1", "DEFAULT as a value"),
        (
            "MERGE INTO t USING (SELECT 1L AS id) x ON t.id = x.id WHEN MATCHED THEN UPDATE SET a = DEFAULT",
            "DEFAULT as",
        ),
        (
            "WITH x AS (SELECT 1L AS id, 9L AS a) MERGE INTO t USING x ON t.id = x.id WHEN MATCHED THEN DELETE",
            r"WITH before MERGE .*USING \(WITH … SELECT …\) AS x",
        ),
        ("WITH x AS (SELECT 1L AS id) DELETE FROM t WHERE id IN (SELECT id FROM x)", "WITH before DELETE"),
    ],
)
def test_what_a_table_cannot_do_is_refused_with_the_way_to_do_it(run: Any, lake: Path, text: str, message: str) -> None:
    rows = pa.table({"id": [1], "a": [2], "s": [{"a": 3, "b": 4}]})
    write_dataset(rows, lake / "t.lance")
    with pytest.raises(UnsupportedFeature, match=message):
        run(text)
    assert LanceDataset(lake / "t.lance").to_table() == rows


def test_the_ways_that_the_refusals_name_work(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"id": [1], "a": [2], "s": [{"a": 3, "b": 4}]}), lake / "t.lance")
    struct = "SELECT id, named_struct('a', 5L, 'b', s.b) AS s FROM t"
    run(f"MERGE INTO t USING ({struct}) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET t.s = q.s")
    run("INSERT INTO t (id) WITH x AS (SELECT 7L AS id) SELECT id FROM x")
    changed = "WITH x AS (SELECT 7L AS id, 8L AS a) SELECT * FROM x"
    run(f"MERGE INTO t USING ({changed}) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET a = q.a")
    assert stored(lake, "t") == [(1, 2, {"a": 5, "b": 4}), (7, 8, None)]
    run("DELETE FROM t WHERE id IN (WITH x AS (SELECT 7L AS id) SELECT id FROM x)")
    assert len(stored(lake, "t")) == 1


@pytest.mark.parametrize(
    "moment",
    ["now() - INTERVAL 1 SECOND", "now() + INTERVAL '1' DAY", "now() - INTERVAL '1 second' + INTERVAL 1 DAY 2 HOURS"],
)
def test_a_moment_may_have_intervals_added(run: Any, lake: Path, moment: str) -> None:
    time.sleep(1.1)
    assert run(f"SELECT count(*) AS n FROM numbers TIMESTAMP AS OF {moment} AS t WHERE t.id < 5").first().n == 5


def test_a_version_of_a_branch_is_read_by_name_and_number(run: Any, lake: Path) -> None:
    run("CREATE BRANCH trial ON numbers")
    trial = LanceDataset(lake / "numbers.lance").checkout_version(("trial", None))
    first = trial.version
    trial.delete("id > 2")
    assert run("SELECT count(*) AS n FROM numbers VERSION AS OF 'trial'").first().n == 3
    assert run(f"SELECT count(*) AS n FROM numbers VERSION AS OF 'trial@v{first}'").first().n == 10


def test_a_text_names_a_tag_or_branch_before_a_version(run: Any, lake: Path) -> None:
    numbers = LanceDataset(lake / "numbers.lance")
    numbers.delete("id > 7")
    numbers.delete("id > 5")
    branch = numbers.create_branch("2")
    branch.delete("id > 0")

    def count(version: str) -> int:
        found = run(f"SELECT count(*) AS n FROM numbers VERSION AS OF {version}").first()
        return found.n  # type: ignore[no-any-return]

    assert [count(version) for version in ("'3'", "3", "'2'", "2", f"'2@v{branch.version}'")] == [6, 6, 1, 8, 1]
    numbers.tags.create("3", 1)
    assert [count(version) for version in ("'3'", "3", "'1'")] == [10, 6, 10]


def test_main_names_the_main_branch_from_everywhere(run: Any, lake: Path) -> None:
    numbers = LanceDataset(lake / "numbers.lance")
    trial = numbers.create_branch("trial")
    trial.delete("id > 2")
    numbers.delete("id > 7")
    for table in ("numbers", f"lance.`{trial.uri}`"):
        assert run(f"SELECT count(*) AS n FROM {table} VERSION AS OF 'main'").first().n == 8
        assert run(f"SELECT count(*) AS n FROM {table} VERSION AS OF 'main@v1'").first().n == 10


@pytest.mark.parametrize("named", ["{}", "'{}'", "'main@v{}'"])
def test_a_version_that_is_too_large_is_refused_in_the_words_of_sql(run: Any, named: str) -> None:
    number = 99999999999999999999
    with pytest.raises(InvalidInput, match=f"^VERSION AS OF {number}: a version's number fits into 64 bits"):
        run(f"SELECT * FROM numbers VERSION AS OF {named.format(number)}")


@pytest.mark.parametrize(
    ("value", "kind"), [("array()", "array<void>"), ("map()", "map<void,void>"), ("INTERVAL 1 YEAR", "interval year")]
)
def test_a_type_that_no_table_stores_is_refused_with_its_column(run: Any, lake: Path, value: str, kind: str) -> None:
    for text in (
        f"CREATE TABLE t USING lance AS SELECT 1 AS x, {value} AS v",
        f"INSERT INTO numbers SELECT 1, 2, {value}",
    ):
        with pytest.raises(SchemaMismatch, match=f"column '[vs]' is {kind}, which no Lance table stores: cast it"):
            run(text)
    run("CREATE TABLE t USING lance AS SELECT CAST(array() AS array<int>) AS v")
    assert stored(lake, "t") == [([],)]
