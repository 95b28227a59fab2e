"""`sql`: INSERT, DELETE and UPDATE, by conditions and by queries."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.changing import chosen_rows
from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature, VersionNotFound
from lance_ops.runners import InThreads
from lance_ops.spark import OnSpark, sql
from lance_ops.spark.sql_access.row_changes import statements
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.writing import UpdatedRowWriter
from tests.spark.sql_access.shown_rows import first, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAIRS = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32()), ("y", pa.timestamp("us"))]))])


def test_rows_are_inserted_by_position_by_columns_and_by_name(run: Any, lake: Path) -> None:
    run("INSERT INTO numbers VALUES (10, 1, 'k'), (11, 2, 'l')")
    run(f"INSERT INTO lance.`{lake}/numbers.lance` (s, id) SELECT 'm', 12")
    run("INSERT INTO TABLE numbers BY NAME SELECT 13L AS id, 'n' AS S")
    run("INSERT INTO numbers WITH q AS (SELECT * FROM numbers@v1) SELECT id + 100, x, s FROM q WHERE id = 3")
    assert LanceDataset(lake / "numbers.lance").version == 5
    added = [(10, 1, "k"), (11, 2, "l"), (12, None, "m"), (13, None, "n"), (103, 3, "b")]
    assert [row for row in stored(lake) if row[0] >= 10] == added
    with pytest.raises(SchemaMismatch, match=r"2 columns for 3 of the table \(id, x, s\)"):
        run("INSERT INTO numbers VALUES (1, 2)")
    with pytest.raises(UnsupportedFeature, match="PARTITION"):
        run("INSERT INTO numbers PARTITION (s = 'a') SELECT 1, 2")
    with pytest.raises(SchemaMismatch, match="'nope' is not in the table"):
        run("INSERT INTO numbers BY NAME SELECT 1L AS id, 2 AS nope")
    with pytest.raises(InvalidInput, match="no option 'nope'"):
        run("CREATE TABLE other USING lance OPTIONS ('nope' = 1) AS SELECT 1 AS id")


def test_whole_numbers_are_inserted_into_decimals_that_hold_them(run: Any, lake: Path) -> None:
    run("CREATE TABLE prices (id BIGINT, price DECIMAL(10, 2)) USING lance")
    run("INSERT INTO prices VALUES (1, 5)")
    source = "(SELECT 1L AS id, 7L AS price) AS s ON prices.id = s.id"
    run(f"MERGE INTO prices USING {source} WHEN MATCHED THEN UPDATE SET price = s.price")
    assert stored(lake, "prices") == [(1, Decimal("7.00"))]
    with pytest.raises(SchemaMismatch, match="'price'.*does not fit in precision 10"):
        run("INSERT INTO prices VALUES (2, 100000000)")


def test_rows_are_replaced_all_or_those_that_match(run: Any, lake: Path) -> None:
    run("INSERT INTO numbers REPLACE WHERE id >= 2 VALUES (5, 50, 'new')")
    assert stored(lake) == [(0, 0, "a"), (1, 1, "b"), (5, 50, "new")]
    run("INSERT INTO numbers REPLACE WHERE id IS DISTINCT FROM 1 AND s IS NOT DISTINCT FROM 'a' VALUES (6, 60, 'a')")
    assert stored(lake) == [(1, 1, "b"), (5, 50, "new"), (6, 60, "a")]
    run("INSERT INTO numbers REPLACE WHERE id IS DISTINCT FROM 1 FROM numbers SELECT * WHERE id = 6")
    assert stored(lake) == [(1, 1, "b"), (6, 60, "a")]
    run("INSERT OVERWRITE numbers SELECT id, x, s FROM numbers WHERE id = 1")
    opened = LanceDataset(lake / "numbers.lance")
    assert stored(lake) == [(1, 1, "b")]
    assert opened.schema.field("x").type == pa.int32()


def test_rows_are_deleted_by_a_condition_and_by_a_query(run: Any, lake: Path) -> None:
    assert first(run("DELETE FROM numbers n WHERE n.id < 3 AND s = 'a'")) == {"num_affected_rows": 2}
    run("CREATE TABLE gone USING lance AS SELECT * FROM VALUES (5), (5), (NULL), (77) AS t(key)")
    assert first(run("DELETE FROM numbers WHERE id IN (SELECT key FROM gone WHERE key < 100)")) == {
        "num_affected_rows": 1
    }
    assert [row[0] for row in stored(lake)] == [1, 3, 4, 6, 7, 8, 9]
    text = "DELETE FROM numbers n WHERE n.s = 'b' AND (id IN (SELECT x FROM numbers WHERE x IN (1, 3, 4))) AND n.x > 1"
    assert first(run(text)) == {"num_affected_rows": 1}
    assert [row[0] for row in stored(lake)] == [1, 4, 6, 7, 8, 9]
    run("DELETE FROM numbers")
    assert stored(lake) == []
    run("INSERT INTO numbers VALUES (1, 1, 'x')")
    run("TRUNCATE TABLE numbers")
    assert stored(lake) == []


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        pytest.param(pa.array([2048.0, 0.1, None], pa.float16()), "k = 2049", id="halves"),
        pytest.param(pa.array([2048.0, 0.1, None], pa.float16()), "k < 0.1F", id="a float beside a half"),
        pytest.param(pa.array([7, 8, None], pa.int32()), "k IN (SELECT 3000000000L UNION ALL SELECT 7L)", id="longs"),
        pytest.param(pa.array([7, 8, None], pa.uint64()), "k IN (SELECT -1L UNION ALL SELECT 7L)", id="negative"),
        pytest.param(pa.array([1, 2001, None], pa.timestamp("ns")), "k IN (SELECT k FROM keyed WHERE x = 1)", id="ns"),
    ],
)
def test_a_delete_finds_the_values_that_spark_finds_equal(
    run: Any, lake: Path, column: pa.Array, condition: str
) -> None:
    write_dataset(pa.table({"k": column, "x": [1, 2, 3]}), lake / "keyed.lance")
    shown = {row["x"] for row in run(f"SELECT x FROM keyed WHERE {condition}").collect()}
    run(f"DELETE FROM keyed WHERE {condition}")
    assert set(LanceDataset(lake / "keyed.lance").to_table()["x"].to_pylist()) == {1, 2, 3} - shown


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (pa.int32(), "SELECT 3000000000L UNION ALL SELECT 7L UNION ALL SELECT NULL"),
        (pa.uint16(), "SELECT -1L UNION ALL SELECT 7L"),
        (pa.uint64(), "SELECT -1 UNION ALL SELECT 7"),
        (pa.decimal128(4, 0), "SELECT 10000 UNION ALL SELECT 7"),
        (
            pa.timestamp("s"),
            "SELECT TIMESTAMP_NTZ '1970-01-01 00:00:07' + make_dt_interval(0, 0, 0, e / 2) FROM halves",
        ),
        (pa.timestamp("ms", "UTC"), "SELECT timestamp_micros(7000 + 500 * CAST(e AS BIGINT)) FROM halves"),
        (pa.timestamp("s"), "SELECT NULL UNION ALL SELECT NULL WHERE false"),
        (pa.duration("s"), "SELECT make_dt_interval(0, 0, 0, 7 - e / 2) FROM halves"),
        (pa.duration("ms"), "SELECT make_dt_interval(0, 0, 0, 0.007 - CAST(e AS INT) * 0.0005) FROM halves"),
    ],
    ids=str,
)
def test_keys_of_a_type_with_more_values_are_joined_by_key(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, query: str
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("Spark joins the whole table")

    monkeypatch.setattr(statements, "delete_computed", fail)
    write_dataset(pa.table({"k": pa.array([7, 8, None], kind)}), lake / "keyed.lance")
    write_dataset(pa.table({"e": [0.0, 1.0]}), lake / "halves.lance")
    num_deleted = int("NULL" not in query or "7" in query)
    assert first(run(f"DELETE FROM keyed WHERE k IN ({query})")) == {"num_affected_rows": num_deleted}
    left = LanceDataset(lake / "keyed.lance").to_table().cast(pa.schema([("k", "int64")]))["k"].to_pylist()
    assert left == [7, 8, None][num_deleted:]


def test_bytes_of_another_length_are_no_key_of_a_fixed_length(run: Any, lake: Path) -> None:
    keys = pa.array([b"ab", b"a\0", None], pa.binary(2))
    write_dataset(pa.table({"k": keys, "x": pa.array([1, 2, 3], pa.int32())}), lake / "keyed.lance")
    found = "SELECT * FROM VALUES (X'6162', 7), (X'61', 8), (X'616200', 9), (NULL, 9) AS s(k, x)"
    run(f"MERGE INTO keyed USING ({found}) s ON keyed.k = s.k WHEN MATCHED THEN UPDATE SET *")
    left = [(b"ab", 7), (b"a\0", 2), (None, 3)]
    assert sorted(LanceDataset(lake / "keyed.lance").to_table()["x"].to_pylist()) == [2, 3, 7]
    assert first(run(f"DELETE FROM keyed WHERE k IN (SELECT k FROM ({found}))")) == {"num_affected_rows": 1}
    assert LanceDataset(lake / "keyed.lance").to_table()["k"].to_pylist() == [key for key, _ in left[1:]]


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM numbers WHERE id IN (SELECT id FROM numbers VERSION AS OF 99)",
        "UPDATE numbers SET x = 0 WHERE id IN (SELECT id FROM numbers VERSION AS OF 99)",
        "MERGE INTO numbers t USING (SELECT * FROM numbers VERSION AS OF 99) n ON t.id = n.id WHEN MATCHED THEN DELETE",
    ],
)
def test_a_version_that_the_statement_names_wrongly_is_no_conflict(run: Any, lake: Path, text: str) -> None:
    with pytest.raises(VersionNotFound, match="has no version 99"):
        run(text)


def test_a_table_named_by_path_and_by_name_is_read_at_one_version(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, uri = Tables.open, lake / "numbers.lance"

    def open_and_change(self: Tables, *args: Any) -> Any:
        made = opened(self, *args)
        if self.pinned and LanceDataset(uri).version == 1:
            write_dataset(pa.table({"id": [99], "x": pa.array([9], pa.int32()), "s": ["z"]}), uri, mode="append")
        return made

    monkeypatch.setattr(Tables, "open", open_and_change)
    text = f"UPDATE numbers SET x = (SELECT CAST(count(*) AS INT) FROM lance.`{lake}/./numbers.lance`) WHERE id = 1"
    run(text)
    assert LanceDataset(uri).to_table(filter="id = 1")["x"].to_pylist() == [10]


def test_the_fields_of_an_assigned_struct_match_without_case(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"id": [1], "s": [{"x": 1, "y": None}]}, PAIRS), lake / "pairs.lance")
    run("UPDATE pairs SET s = named_struct('Y', DATE '2026-01-02', 'X', 5)")
    assert LanceDataset(lake / "pairs.lance").to_table()["s"].to_pylist() == [{"x": 5, "y": datetime(2026, 1, 2)}]


def test_large_new_values_are_written_a_few_at_once(run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_rows, "_BYTES_AT_ONCE", 1 << 20)
    seen: list[int] = []
    write_new = UpdatedRowWriter.write_new

    def noted(self: UpdatedRowWriter, rows: pa.Table) -> None:
        seen.append(rows.nbytes)
        write_new(self, rows)

    monkeypatch.setattr(UpdatedRowWriter, "write_new", noted)
    inserts = "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, repeat('x', 9999))"
    merge = "MERGE INTO numbers t USING (SELECT id FROM range(5, 1010)) n ON t.id = n.id"
    run(f"{merge} WHEN MATCHED AND t.x = 0 THEN DELETE {inserts}")
    assert LanceDataset(lake / "numbers.lance").count_rows() == 1010
    assert len(seen) > 4
    assert max(seen) < 3 << 20


def test_rows_are_updated(run: Any, lake: Path) -> None:
    text = "UPDATE numbers AS n SET n.x = CASE WHEN id > 8 THEN 0 ELSE x * 10 END, s = upper(s) || '!' WHERE id >= 8"
    assert first(run(text)) == {"num_affected_rows": 2}
    assert stored(lake)[-2:] == [(8, 80, "A!"), (9, 0, "B!")]
    with pytest.raises(InvalidInput, match="'x' is set twice"):
        run("UPDATE numbers SET x = 1, numbers.x = 2")
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        run("UPDATE numbers SET nope = 1")


def test_rows_are_updated_by_a_query(run: Any, lake: Path) -> None:
    run("CREATE TABLE seen USING lance AS SELECT * FROM VALUES (3L), (5L), (5L), (NULL), (77L) AS t(key)")
    text = (
        "UPDATE numbers n SET n.x = x * 10 + ascii(s), s = 'seen' WHERE n.id IN (SELECT key FROM seen WHERE key < 100)"
    )
    assert first(run(text)) == {"num_affected_rows": 2}
    assert [row for row in stored(lake) if row[2] == "seen"] == [(3, 30 + ord("b"), "seen"), (5, 50 + ord("b"), "seen")]
    text = f"UPDATE lance.`{lake}/numbers.lance` SET x = 0 WHERE s IN (WITH q AS (SELECT 'a') SELECT * FROM q)"
    assert first(run(text)) == {"num_affected_rows": 5}
    assert [row[1] for row in stored(lake) if row[2] == "a"] == [0] * 5
    text = r"UPDATE numbers SET x = -1, s = '\t' WHERE id IN (SELECT key FROM seen) AND x != 0 AND s != '\t' AND id < 5"
    assert first(run(text)) == {"num_affected_rows": 1}
    assert [row for row in stored(lake) if row[1] == -1] == [(3, -1, "\t")]
    twice = "UPDATE numbers SET x = -x WHERE s IN (SELECT 'b' AS k) AND x > 1"
    assert first(run(twice)) == {"num_affected_rows": 2}
    assert [row[:2] for row in stored(lake) if row[2] == "b"] == [(1, 1), (7, -7), (9, -9)]
    run("UPDATE numbers SET id = id + 100, x = (SELECT count(*) FROM numbers) WHERE id NOT IN (SELECT key FROM seen)")
    assert all(row[0] < 100 for row in stored(lake))  # a null among the keys
    run("UPDATE numbers n SET n.id = n.id + 100 WHERE EXISTS (SELECT 1 FROM seen WHERE key = n.id) OR n.x = -7")
    assert [row[0] for row in stored(lake) if row[0] > 99] == [103, 105, 107]


_CHOSEN_BY_SPARK = (
    *(
        "x % 3 = 1 AND s = 'a'",
        "substring(s, 1, 1) = 'a'",
        "id / 2 > 3",
        "s RLIKE '^[b-z]'",
        "s <=> NULL",
        "s ILIKE 'A'",
    ),
    *("id NOT IN (SELECT x FROM numbers WHERE x > 3)", "id = (SELECT max(id) FROM numbers)", "x IN (id, 3)"),
    *("EXISTS (SELECT 1 FROM numbers o WHERE o.id = numbers.id + 1 AND o.s = 'a')", "numbers.x BETWEEN id AND 4"),
    *("date_add(DATE '2026-01-01', x) > current_date() - INTERVAL 100 YEARS AND id < 4", "s IN (r'a', 'it''s')"),
    *("CASE id WHEN 1 THEN true ELSE s = 'a' END", "hex(s) = hex(X'61')", "x = 1L OR x = 2S", "_rowaddr = 3"),
    *("s || x = 'a4' OR s = 'a\\n'", "transform(array(x), e -> e + 1)[0] = 5 -- the last", "true"),
)


@pytest.mark.parametrize("condition", _CHOSEN_BY_SPARK)
def test_a_delete_removes_the_rows_that_a_select_shows(run: Any, lake: Path, condition: str) -> None:
    shown = {row.id for row in run(f"SELECT id FROM numbers WHERE {condition}").collect()}
    counted = first(run(f"DELETE FROM numbers WHERE {condition}"))["num_affected_rows"]
    assert counted == len(shown)
    assert {row[0] for row in stored(lake)} == {*range(10)} - shown


@pytest.mark.parametrize("pattern", ["50\\%", "%\\%", "50\\%%", "a\\_b", "c\\\\%", "50%"])
def test_a_delete_like_a_parameter_removes_the_rows_that_a_select_shows(run: Any, lake: Path, pattern: str) -> None:
    texts = ["50", "50%", "50%x", "50\\", "50\\x", "a_b", "axb", "a\\_b", "c\\d", "c\\\\d", "x%", "x\\"]
    write_dataset(pa.table({"s": texts}), lake / "texts.lance")
    args = {"p": pattern, "all": texts}
    shown = {row.s for row in run("SELECT s FROM (SELECT explode(:all) AS s) WHERE s LIKE :p", args=args).collect()}
    assert shown
    run("DELETE FROM texts WHERE s LIKE :p", args={"p": pattern})
    assert {row[0] for row in stored(lake, "texts")} == {*texts} - shown


@pytest.mark.parametrize("condition", ["s NOT LIKE '%'", "NOT s LIKE '%%'", "s LIKE 'a%' OR NOT (s LIKE '%')"])
def test_a_delete_that_denies_a_pattern_of_any_text_keeps_the_nulls(run: Any, lake: Path, condition: str) -> None:
    write_dataset(pa.table({"id": [1, 2, 3, 4], "s": ["a", None, "", "b"]}), lake / "texts.lance")
    rows = "VALUES (1, 'a'), (2, NULL), (3, ''), (4, 'b') AS q (id, s)"
    met = {row.id for row in run(f"SELECT id FROM {rows} WHERE {condition}").collect()}
    assert first(run(f"DELETE FROM texts WHERE {condition}"))["num_affected_rows"] == len(met)
    left = LanceDataset(lake / "texts.lance").to_table()["id"].to_pylist()
    assert {*left} == {1, 2, 3, 4} - met


@pytest.mark.parametrize(
    ("condition", "row", "written"),
    [
        ("id >= 2 OR x > 7", "20L, NULL, NULL", (20, None, None)),
        ("x > 1", "20L, 10.4, NULL", (20, 10, None)),
        ("id > 1 AND s IS NOT NULL AND s < 'c'", "20L, 1, 7", (20, 1, "7")),
    ],
)
def test_the_condition_of_a_replacement_compares_values_in_the_types_of_the_table(
    run: Any, lake: Path, condition: str, row: str, written: tuple[Any, ...]
) -> None:
    run(f"INSERT INTO numbers REPLACE WHERE {condition} SELECT {row}")
    assert stored(lake) == [(0, 0, "a"), (1, 1, "b"), written]
    with pytest.raises(InvalidInput, match="1 rows to write do not match"):
        run(f"INSERT INTO numbers REPLACE WHERE {condition} SELECT -1L, NULL, NULL")


def test_a_replacement_like_a_parameter_with_an_escape_is_refused(run: Any, lake: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="REPLACE WHERE s LIKE :p .*DELETE rows by any condition"):
        run("INSERT INTO numbers REPLACE WHERE s LIKE :p VALUES (1, 2, 'a%')", args={"p": "a\\%"})


def test_columns_may_have_the_names_of_case_and_end(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"case": [1, 2, 3], "end": [1, 2, 3], "when": [0, 0, 0]}), lake / "spans.lance")
    run(
        "UPDATE spans SET when = CASE WHEN spans.end > 1 THEN spans.case END, `end` = spans.end * 10 "
        "WHERE spans.case < 3"
    )
    assert stored(lake, "spans") == [(1, 10, None), (2, 20, 2), (3, 3, 0)]
    run(
        "MERGE INTO spans t USING (SELECT * FROM VALUES (2L, 20L) AS q(case, end)) q ON t.case = q.case "
        "WHEN MATCHED AND t.end = q.end AND t.when > 1 "
        "THEN UPDATE SET t.end = CASE WHEN q.end > 1 THEN t.case + q.end END "
        "WHEN NOT MATCHED BY SOURCE AND t.end < 5 THEN DELETE"
    )
    assert stored(lake, "spans") == [(1, 10, None), (2, 22, 2)]


@pytest.mark.parametrize("condition", ["id % 3 = 1", "id > 2 AND lower(s) = 'a'"])
def test_changes_by_sparks_expressions_run_in_its_tasks(spark: SparkSession, lake: Path, condition: str) -> None:
    runner = OnSpark(spark, least_bytes=0)
    expected = {
        (row.id, row.x * 2 if row.hit else row.x, row.s)
        for row in spark.read.format("lance")
        .load(str(lake / "numbers.lance"))
        .selectExpr("*", f"({condition}) AS hit")
        .collect()
    }
    sql(spark, f"UPDATE numbers SET x = x * 2 WHERE {condition}", runner=runner)
    assert {*stored(lake)} == expected
    sql(spark, f"DELETE FROM numbers WHERE {condition}", runner=runner)
    assert len(stored(lake)) == 7
    opened = LanceDataset(lake / "numbers.lance")
    kinds = [type(each.operation).__name__ for each in opened.get_transactions(2) if each is not None]
    assert kinds == ["Delete", "Update"]


def test_a_change_chooses_its_rows_again_after_a_conflict(spark: SparkSession, lake: Path) -> None:
    uri = lake / "numbers.lance"

    class Overtaken(InThreads):
        def map(self, *args: Any, **kwargs: Any) -> Any:
            if LanceDataset(uri).version == 1:
                LanceDataset(uri).update({"x": "100"}, "id = 2")
            return super().map(*args, **kwargs)

    sql(spark, "UPDATE numbers SET x = x + ascii(s) - 97 WHERE id < 4 OR x > 50", runner=Overtaken())
    assert [row[1] for row in stored(lake)[:4]] == [0, 2, 100, 4]
    assert LanceDataset(uri).version == 3


def test_a_value_that_does_not_fit_changes_nothing(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"i": pa.array([1, 2], pa.uint8()), "s": ["a", None]}), lake / "fits.lance")
    opened = LanceDataset(lake / "fits.lance")
    opened.alter_columns({"path": "i", "nullable": False})
    for text, kind, reason in (
        ("i = i + 300", SchemaMismatch, "'i'.*(uint8|300|301)"),
        ("i = i + 70000", PySparkException, "a value does not fit column 'i' of type smallint"),
        ("i = nullif(i, 1)", SchemaMismatch, "'i' holds nulls and may not"),
        ("i = array(1)", SchemaMismatch, "'i' of type smallint gets a array"),
        ("s = DATE '2026-01-01' + i + nope", PySparkException, "nope"),
        ("i = INTERVAL '1' YEAR", SchemaMismatch, "column 'i' of type smallint: no Lance table stores interval year"),
        ("i = DATE '2026-01-01'", SchemaMismatch, "column 'i' of type smallint: .*unix_date"),
    ):
        with pytest.raises(kind, match=reason):
            run(f"UPDATE fits SET {text}")
    assert LanceDataset(lake / "fits.lance").version == 2
    run("UPDATE fits SET s = i + 0.50, i = 254.7")
    assert stored(lake, "fits") == [(254, "1.50"), (254, "2.50")]


def test_nanoseconds_are_kept_where_spark_does_not_read_them(run: Any, lake: Path) -> None:
    moments = pa.array([1, 2_000_000_001], pa.timestamp("ns"))
    write_dataset(pa.table({"at": moments, "x": [1, 2]}), lake / "fine.lance")
    with pytest.raises(UnsupportedFeature, match="at = at .*Spark cuts the nanoseconds"):
        run("UPDATE fine SET at = at + INTERVAL 1 HOUR")
    run("UPDATE fine SET x = second(at) + 40")
    assert LanceDataset(lake / "fine.lance").to_table()["at"].cast(pa.int64()).to_pylist() == [1, 2_000_000_001]
    run("DELETE FROM fine WHERE at < TIMESTAMP_NTZ '1970-01-01 00:00:01'")
    assert LanceDataset(lake / "fine.lance").to_table()["x"].to_pylist() == [42]
