"""`sql`: MERGE INTO, and what the library's merge cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, LanceOpsError, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import OnSpark, sql, use_namespace
from lance_ops.spark.sql_access import statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = [(1, 10, "a"), (2, 20, "b"), (3, 30, "c"), (4, None, "d")]
NEWS = [(2, 21, "B", True), (3, 5, "C", False), (5, 50, "E", True)]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table of three columns, and a source with one more; the source's columns are in another order."""
    table = pa.Table.from_pylist([dict(zip(("id", "x", "s"), row, strict=True)) for row in START])
    write_dataset(
        table.cast(pa.schema([("id", pa.int64()), ("x", pa.int32()), ("s", pa.string())])), tmp_path / "t.lance"
    )
    news = pa.Table.from_pylist([dict(zip(("ID", "x", "s", "flag"), row, strict=True)) for row in NEWS])
    write_dataset(news.select(["flag", "s", "x", "ID"]), tmp_path / "news.lance")
    use_namespace(spark, tmp_path)
    yield tmp_path
    use_namespace(spark, None)


def merge(spark: SparkSession, lake: Path, text: str) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    """Return the counts (affected, updated, deleted, inserted) and the rows."""
    counts = tuple(sql(spark, f"MERGE INTO {text}", runner=InThreads()).collect()[0])
    rows = [tuple(row.values()) for row in LanceDataset(lake / "t.lance").to_table().to_pylist()]
    return counts, sorted(rows, key=lambda row: (row[0] is None, row))


def test_all_columns_are_updated_and_inserted(spark: SparkSession, lake: Path) -> None:
    text = "t USING news AS n ON t.id = n.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    counts, rows = merge(spark, lake, text)
    assert counts == (3, 2, 0, 1)
    assert rows == [(1, 10, "a"), (2, 21, "B"), (3, 5, "C"), (4, None, "d"), (5, 50, "E")]
    assert LanceDataset(lake / "t.lance").schema.field("x").type == pa.int32()


def test_values_are_computed_by_spark_from_the_source(spark: SparkSession, lake: Path) -> None:
    counts, rows = merge(
        spark,
        lake,
        """
        t AS a USING (SELECT id AS key, x FROM news WHERE flag) b ON b.key = a.id
        WHEN MATCHED THEN UPDATE SET a.x = b.x * 2, s = concat('n', b.key)
        WHEN NOT MATCHED BY TARGET THEN INSERT (s, x, id) VALUES (concat('n', key), b.x * 2, b.key)
        """,
    )
    assert counts == (2, 1, 0, 1)
    assert rows == [(1, 10, "a"), (2, 42, "n2"), (3, 30, "c"), (4, None, "d"), (5, 100, "n5")]


def test_the_alias_of_the_source_may_name_its_columns(spark: SparkSession, lake: Path) -> None:
    text = (
        "t USING (VALUES (2L, 5, 'B'), (7L, 6, 'G')) AS n(id, x, s) ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = n.x"
    )
    counts, rows = merge(spark, lake, f"{text} WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, n.s)")
    assert counts == (2, 1, 0, 1)
    assert rows == [(1, 10, "a"), (2, 5, "b"), (3, 30, "c"), (4, None, "d"), (7, None, "G")]


def test_some_columns_are_updated(spark: SparkSession, lake: Path) -> None:
    counts, rows = merge(spark, lake, "t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET s = n.s")
    assert counts == (2, 2, 0, 0)
    assert rows == [(1, 10, "a"), (2, 20, "B"), (3, 30, "C"), (4, None, "d")]


def test_a_condition_may_read_both_rows(spark: SparkSession, lake: Path) -> None:
    text = "t USING news n ON t.id = n.id WHEN MATCHED AND n.x > t.x THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    counts, rows = merge(spark, lake, text)
    assert counts == (2, 1, 0, 1)
    assert rows == [(1, 10, "a"), (2, 21, "B"), (3, 30, "c"), (4, None, "d"), (5, 50, "E")]


def test_rows_are_deleted_matched_and_unmatched(spark: SparkSession, lake: Path) -> None:
    assert merge(spark, lake, "t USING news n ON t.id = n.id WHEN MATCHED AND n.flag THEN DELETE") == (
        (1, 0, 1, 0),
        [(1, 10, "a"), (3, 30, "c"), (4, None, "d")],
    )
    on = "t USING news n ON t.id = n.id"
    text = f"{on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE AND t.x > 5 THEN DELETE"
    assert merge(spark, lake, text) == ((2, 1, 1, 0), [(3, 5, "C"), (4, None, "d")])
    assert merge(spark, lake, f"{on} WHEN NOT MATCHED BY SOURCE THEN DELETE")[1] == [(3, 5, "C")]


@pytest.mark.parametrize(
    ("clauses", "counts", "expected"),
    [
        pytest.param(
            "WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT *",
            (3, 2, 0, 1),
            [(1, 10, "a"), (2, 41, "b"), (3, 35, "c"), (4, None, "d"), (5, 50, "E")],
            id="values of both rows, and others of inserted rows",
        ),
        pytest.param(
            "WHEN MATCHED THEN UPDATE SET s = 'OLD' WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, 'old')",
            (3, 2, 0, 1),
            [(1, 10, "a"), (2, 20, "OLD"), (3, 30, "OLD"), (4, None, "d"), (5, None, "old")],
            id="texts of another case are other values",
        ),
        pytest.param(
            """
            WHEN MATCHED AND n.flag THEN UPDATE SET s = 'first' WHEN MATCHED AND t.x > 15 THEN UPDATE SET x = 0
            WHEN NOT MATCHED AND n.x > 60 THEN INSERT * WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, 'new')
            """,
            (3, 2, 0, 1),
            [(1, 10, "a"), (2, 20, "first"), (3, 0, "c"), (4, None, "d"), (5, None, "new")],
            id="the first clause that fits",
        ),
        pytest.param(
            "WHEN MATCHED AND n.flag THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            (2, 1, 0, 1),
            [(1, 10, "a"), (2, 21, "B"), (3, 30, "c"), (4, None, "d"), (5, 50, "E")],
            id="a condition on a column that the table does not have",
        ),
        pytest.param(
            "WHEN MATCHED AND t.x > 25 THEN DELETE WHEN NOT MATCHED AND n.flag THEN INSERT *",
            (2, 0, 1, 1),
            [(1, 10, "a"), (2, 20, "b"), (4, None, "d"), (5, 50, "E")],
            id="deletions by a condition on the table",
        ),
        pytest.param(
            "WHEN MATCHED THEN UPDATE SET x = t.x + 1 WHEN NOT MATCHED BY SOURCE THEN DELETE",
            (4, 2, 2, 0),
            [(2, 21, "b"), (3, 31, "c")],
            id="unmatched rows are deleted",
        ),
        pytest.param(
            """
            WHEN NOT MATCHED AND n.x > 60 THEN INSERT * WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)
            WHEN NOT MATCHED BY SOURCE THEN DELETE
            """,
            (3, 0, 2, 1),
            [(2, 20, "b"), (3, 30, "c"), (5, None, None)],
            id="matched rows without a clause stay",
        ),
        pytest.param(
            """
            WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED AND n.flag THEN INSERT *
            """,
            (3, 1, 1, 1),
            [(1, 10, "a"), (3, 5, "C"), (4, None, "d"), (5, 50, "E")],
            id="some matched rows are deleted and others updated",
        ),
        pytest.param(
            """
            WHEN MATCHED AND t.x > 25 THEN UPDATE SET x = t.x + 1 WHEN MATCHED THEN DELETE
            WHEN NOT MATCHED BY SOURCE AND t.x > 5 THEN DELETE
            """,
            (3, 1, 2, 0),
            [(3, 31, "c"), (4, None, "d")],
            id="matched and unmatched rows are deleted and others updated",
        ),
        pytest.param(
            "WHEN MATCHED AND n.flag THEN UPDATE SET x = t.x + 1 WHEN NOT MATCHED BY SOURCE THEN DELETE",
            (3, 1, 2, 0),
            [(2, 21, "b"), (3, 30, "c")],
            id="matched rows that fit no clause stay where unmatched ones are deleted",
        ),
        pytest.param(
            "WHEN NOT MATCHED BY SOURCE AND t.x > 5 THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.s = 'd' THEN DELETE",
            (2, 0, 2, 0),
            [(2, 20, "b"), (3, 30, "c")],
            id="unmatched rows are deleted by several conditions",
        ),
        pytest.param(
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 0",
            (2, 2, 0, 0),
            [(1, 0, "a"), (2, 20, "b"), (3, 30, "c"), (4, 0, "d")],
            id="unmatched rows are updated",
        ),
        pytest.param(
            """
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
            WHEN NOT MATCHED BY SOURCE AND t.x IS NULL THEN DELETE
            WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = concat(t.s, ' is gone')
            """,
            (5, 3, 1, 1),
            [(1, 10, "a is gone"), (2, 21, "B"), (3, 5, "C"), (5, 50, "E")],
            id="a table follows its source and marks the rows that are gone",
        ),
        pytest.param(
            "WHEN MATCHED AND t.x > 1000 THEN DELETE WHEN MATCHED AND n.flag THEN UPDATE SET s = n.s",
            (1, 1, 0, 0),
            [(1, 10, "a"), (2, 20, "B"), (3, 30, "c"), (4, None, "d")],
            id="nothing to delete",
        ),
    ],
)
def test_clauses_may_read_both_rows_and_share_them(
    spark: SparkSession, lake: Path, clauses: str, counts: tuple[int, ...], expected: list[tuple[Any, ...]]
) -> None:
    assert merge(spark, lake, f"t USING news n ON t.id = n.id {clauses}") == (counts, expected)
    assert LanceDataset(lake / "t.lance").version == 2


@pytest.mark.parametrize(
    ("on", "clauses", "counts", "expected"),
    [
        pytest.param(
            "t.id = n.id AND t.x > 25",
            "WHEN MATCHED THEN UPDATE SET x = n.x",
            (1, 1, 0, 0),
            [(1, 10, "a"), (2, 20, "b"), (3, 5, "c"), (4, None, "d")],
            id="a condition on the table",
        ),
        pytest.param(
            "(t.id = n.id AND (n.flag OR n.x > 1000))",
            "WHEN MATCHED AND t.x > 1000 OR t.s = 'b' THEN DELETE",
            (1, 0, 1, 0),
            [(1, 10, "a"), (3, 30, "c"), (4, None, "d")],
            id="a condition on the source in brackets",
        ),
        pytest.param(
            "t.id = n.id AND n.id + 1 = t.id",
            "WHEN MATCHED THEN DELETE",
            (0, 0, 0, 0),
            START,
            id="one column compared twice",
        ),
        pytest.param(
            "n.id + 1 = t.id",
            "WHEN MATCHED THEN UPDATE SET s = n.s WHEN NOT MATCHED THEN INSERT (s, id) VALUES (n.s, n.id + 1)",
            (3, 2, 0, 1),
            [(1, 10, "a"), (2, 20, "b"), (3, 30, "B"), (4, None, "C"), (6, None, "E")],
            id="an expression of the source",
        ),
        pytest.param(
            "t.id = (n.id + 1)",
            "WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT (id) VALUES ((n.id + 1))",
            (3, 2, 0, 1),
            [(1, 10, "a"), (2, 20, "b"), (3, 51, "c"), (4, None, "d"), (6, None, None)],
            id="an expression of the source where rows are joined",
        ),
    ],
)
def test_on_may_compare_expressions_and_have_conditions(
    spark: SparkSession, lake: Path, on: str, clauses: str, counts: tuple[int, ...], expected: list[tuple[Any, ...]]
) -> None:
    assert merge(spark, lake, f"t USING news n ON {on} {clauses}") == (counts, expected)


@pytest.fixture
def plain_backslashes(spark: SparkSession) -> Iterator[None]:
    """A backslash in a text is itself, as in Hive; by default it escapes the next character."""
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    yield
    spark.conf.unset("spark.sql.parser.escapedStringLiterals")


@pytest.mark.usefixtures("plain_backslashes")
def test_a_backslash_is_what_the_session_says(spark: SparkSession, lake: Path) -> None:
    source = "(SELECT id, 'd1' AS s, CAST(x AS INT) AS x FROM news)"
    on = f"t USING {source} n ON t.id = n.id"
    inserts = "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, regexp_replace(n.s, 'd', ''))"
    _, rows = merge(spark, lake, rf"{on} WHEN MATCHED THEN UPDATE SET s = regexp_replace(n.s, '\d', '') {inserts}")
    assert rows == [(1, 10, "a"), (2, 20, "d"), (3, 30, "d"), (4, None, "d"), (5, None, "1")]
    _, rows = merge(spark, lake, rf"{on} AND n.s RLIKE '^d\d$' WHEN MATCHED AND n.id = 2 THEN DELETE")
    assert [row[0] for row in rows] == [1, 3, 4, 5]
    computed = rf"t USING {source} n ON t.s = regexp_replace(n.s, '\d', '') AND t.id = n.id WHEN MATCHED THEN DELETE"
    assert [row[0] for row in merge(spark, lake, computed)[1]] == [1, 4, 5]


def test_unmatched_rows_are_updated_whether_or_not_they_have_a_key_of_their_own(
    spark: SparkSession, lake: Path
) -> None:
    on = "t USING news n ON t.id = n.id WHEN NOT MATCHED BY SOURCE"
    add_rows(lake, (None, 1, "null"), (1, 3, "again"))
    counts, rows = merge(spark, lake, f"{on} AND t.x < 10 THEN UPDATE SET x = 0, id = coalesce(t.id, 9)")
    assert counts == (2, 2, 0, 0)
    assert rows == [(1, 0, "again"), (1, 10, "a"), (2, 20, "b"), (3, 30, "c"), (4, None, "d"), (9, 0, "null")]


def test_a_clause_of_unmatched_rows_reads_no_source(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(InvalidInput, match="n.x in WHEN NOT MATCHED BY SOURCE reads n, which has no row there"):
        merge(spark, lake, "t USING news n ON t.id = n.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = n.x")


def overtaken(uri: Path, *, always: bool = False) -> InThreads:
    """Return a runner beside which another writer changes a row while the first attempt, or any, runs its tasks."""

    class Overtaken(InThreads):
        def map(self, *args: Any, **kwargs: Any) -> Any:
            if always or LanceDataset(uri).version == 1:
                LanceDataset(uri).update({"x": "1000"}, "id = 2")
            return super().map(*args, **kwargs)

    return Overtaken()


@pytest.mark.parametrize("retry_timeout", [timedelta(seconds=30), timedelta(0)], ids=str)
def test_values_of_both_rows_are_computed_again_after_an_attempt_of_any_length(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, retry_timeout: timedelta
) -> None:
    uri = lake / "t.lance"
    monkeypatch.setattr(statement, "_RETRY_TIMEOUT", retry_timeout)
    text = "MERGE INTO t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = t.x + n.x"
    sql(spark, text, runner=overtaken(uri))
    assert LanceDataset(uri).to_table(filter="id = 2")["x"].to_pylist() == [1021]
    assert LanceDataset(uri).version == 3


def test_a_merge_that_joins_begins_no_attempt_after_its_time(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = lake / "t.lance"
    monkeypatch.setattr(statement, "_RETRY_TIMEOUT", timedelta(0))
    text = "MERGE INTO t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = t.x + n.x"
    with pytest.raises(TooManyConcurrentWriters, match="gave up after 2 attempts, because 0 s are over"):
        sql(spark, text, runner=overtaken(uri, always=True))
    assert LanceDataset(uri).to_table(filter="id = 3")["x"].to_pylist() == [30]


def add_rows(lake: Path, *rows: tuple[int | None, int, str]) -> None:
    """Append rows to the table; their keys may be there already."""
    uri = lake / "t.lance"
    new = pa.Table.from_pylist([dict(zip(("id", "x", "s"), row, strict=True)) for row in rows])
    write_dataset(new.cast(LanceDataset(uri).schema), uri, mode="append")


@pytest.mark.parametrize(
    ("clauses", "counts", "expected"),
    [
        pytest.param(
            "WHEN MATCHED AND t.x > 20 THEN DELETE",
            (2, 0, 2, 0),
            [(1, 10, "a"), (2, 20, "b"), (3, 3, "kept"), (4, None, "d")],
            id="a condition on the table",
        ),
        pytest.param(
            "WHEN MATCHED AND t.x > 20 THEN DELETE WHEN MATCHED AND t.x < 5 THEN DELETE",
            (3, 0, 3, 0),
            [(1, 10, "a"), (2, 20, "b"), (4, None, "d")],
            id="several deletions",
        ),
        pytest.param(
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND n.flag THEN INSERT *",
            (5, 0, 4, 1),
            [(1, 10, "a"), (4, None, "d"), (5, 50, "E")],
            id="all matched rows",
        ),
        pytest.param(
            "WHEN MATCHED AND t.x > 20 AND n.flag THEN DELETE WHEN MATCHED AND n.x = -1 THEN UPDATE SET x = 0",
            (1, 0, 1, 0),
            [(1, 10, "a"), (2, 20, "b"), (3, 3, "kept"), (3, 30, "c"), (4, None, "d")],
            id="an update that no row of the key takes part in",
        ),
    ],
)
def test_rows_that_share_a_key_are_deleted_one_by_one(
    spark: SparkSession, lake: Path, clauses: str, counts: tuple[int, ...], expected: list[tuple[Any, ...]]
) -> None:
    add_rows(lake, (2, 22, "again"), (3, 3, "kept"))
    assert merge(spark, lake, f"t USING news n ON t.id = n.id {clauses}") == (counts, expected)


@pytest.mark.parametrize(
    ("clauses", "of_key_3"),
    [
        ("WHEN MATCHED AND t.x > 25 THEN UPDATE SET x = t.x + 1", [3, 31]),
        ("WHEN MATCHED AND t.x > 25 THEN DELETE WHEN MATCHED THEN UPDATE SET x = n.x", [5]),
        ("WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT *", [8, 35]),
        ("WHEN MATCHED AND n.x < t.x THEN UPDATE SET *", [3, 5]),
    ],
)
def test_rows_that_share_a_key_are_updated_one_by_one(
    spark: SparkSession, lake: Path, clauses: str, of_key_3: list[int]
) -> None:
    add_rows(lake, (3, 3, "kept"))
    _, rows = merge(spark, lake, f"t USING news n ON t.id = n.id {clauses}")
    assert [row[1] for row in rows if row[0] == 3] == of_key_3


def test_rows_that_share_a_key_outside_the_source_do_not_count(spark: SparkSession, lake: Path) -> None:
    add_rows(lake, (1, 3, "kept"))
    counts, rows = merge(spark, lake, "t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = t.x + n.x")
    assert counts == (2, 2, 0, 0)
    assert rows == [(1, 3, "kept"), (1, 10, "a"), (2, 41, "b"), (3, 35, "c"), (4, None, "d")]


def test_null_keys_match_nothing_where_rows_are_joined(spark: SparkSession, lake: Path) -> None:
    add_rows(lake, (None, 1, "null"), (None, 2, "null"))
    source = "(SELECT id, x, s FROM news WHERE id = 2 UNION ALL SELECT NULL, 7, 'new')"
    clauses = "WHEN MATCHED THEN UPDATE SET x = t.x + 1 WHEN NOT MATCHED THEN INSERT *"
    assert tuple(sql(spark, f"MERGE INTO t USING {source} n ON t.id = n.id {clauses}").collect()[0]) == (2, 1, 0, 1)
    nulls = LanceDataset(lake / "t.lance").to_table(filter="id IS NULL")["x"].to_pylist()
    assert sorted(nulls) == [1, 2, 7]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_of_several_types_become_the_type_of_their_column(spark: SparkSession, lake: Path, ansi: str) -> None:
    exact = 2**53 + 1
    write_dataset(pa.table({"id": [2, 3], "x": [exact, exact], "s": ["b", "c"]}), lake / "big.lance")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        on = "MERGE INTO big t USING news n ON t.id = n.id"
        clauses = "WHEN MATCHED AND n.flag THEN UPDATE SET x = 7D, s = 5 WHEN MATCHED THEN UPDATE SET s = n.s"
        sql(spark, f"{on} {clauses} WHEN NOT MATCHED THEN INSERT (id, x, s) VALUES (n.id, 5.0BD, 'new')")
        rows = LanceDataset(lake / "big.lance").to_table().sort_by("id").to_pylist()
        assert [tuple(row.values()) for row in rows] == [(2, 7, "5"), (3, exact, "C"), (5, 5, "new")]
        with pytest.raises(PySparkException, match=r"CAST_OVERFLOW|CAST_INVALID_INPUT|does not fit column 'x'"):
            sql(spark, f"{on} WHEN MATCHED AND n.flag THEN UPDATE SET x = 1e30D WHEN MATCHED THEN UPDATE SET s = n.s")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_expressions_of_a_clause_are_evaluated_on_its_own_rows_alone(spark: SparkSession, lake: Path) -> None:
    zero = "(SELECT 3L AS id, 0 AS x UNION ALL SELECT 8L, 2 UNION ALL SELECT 9L, 0)"
    clauses = """
    WHEN MATCHED AND t.x > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 0
    WHEN NOT MATCHED AND n.x <> 0 THEN INSERT (id, x) VALUES (n.id, CAST(10 / n.x AS INT))
    """
    counts, rows = merge(spark, lake, f"t USING {zero} n ON t.id = n.id {clauses}")
    assert counts == (2, 0, 1, 1)
    assert rows == [(1, 10, "a"), (2, 20, "b"), (4, None, "d"), (8, 5, None)]


def test_columns_may_have_any_name(spark: SparkSession, lake: Path) -> None:
    names = ["_is_matched", "_IS_DELETED", "action", "address", "column_0", "key_0"]
    write_dataset(pa.table({"id": [2, 3], "x": [1, 2], **{name: [True, False] for name in names}}), lake / "odd.lance")
    clauses = (
        "WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET _is_deleted = t._is_matched, x = t.x + 1"
    )
    sql(spark, f"MERGE INTO odd t USING news n ON t.id = n.id {clauses}")
    assert LanceDataset(lake / "odd.lance").to_table().to_pylist() == [{"id": 3, "x": 3, **dict.fromkeys(names, False)}]


def test_matched_rows_without_a_clause_stay_in_a_table_without_nulls(spark: SparkSession, lake: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.int64(), nullable=False)])
    write_dataset(pa.table({"id": [1, 2], "x": [10, 20]}, schema), lake / "full.lance")
    clauses = (
        "WHEN NOT MATCHED AND n.flag THEN INSERT (id, x) VALUES (n.id, n.x) WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    more = "WHEN NOT MATCHED AND n.x = -1 THEN INSERT (id, x) VALUES (n.id, 0)"
    sql(spark, f"MERGE INTO full t USING news n ON t.id = n.id {more} {clauses}")
    rows = LanceDataset(lake / "full.lance").to_table().sort_by("id").to_pylist()
    assert rows == [{"id": 2, "x": 20}, {"id": 5, "x": 50}]


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("second", ["true", "false"])
def test_a_row_that_gets_two_values_or_is_deleted_and_gets_one_is_refused(
    spark: SparkSession, lake: Path, second: str, in_tasks: bool
) -> None:
    twice = f"(SELECT /*+ REPARTITION(2) */ * FROM VALUES (2L, {second}), (2L, false) AS q(id, gone))"
    clauses = "WHEN MATCHED AND n.gone THEN DELETE WHEN MATCHED THEN UPDATE SET x = t.x + 1"
    runner = OnSpark(spark, least_bytes=0) if in_tasks else InThreads()
    with pytest.raises(InvalidInput, match=r"several source rows match one row of the table.*: id = 2; leave one"):
        sql(spark, f"MERGE INTO t USING {twice} n ON t.id = n.id {clauses}", runner=runner)
    assert LanceDataset(lake / "t.lance").version == 1
    assert [path.name for path in (lake / "t.lance" / "data").iterdir()] == [
        fragment.files[0].path for fragment in LanceDataset(lake / "t.lance").snapshot.fragments
    ]


def test_a_row_is_deleted_once_by_several_source_rows(spark: SparkSession, lake: Path) -> None:
    twice = "(SELECT * FROM VALUES (2L, 1), (2L, 2) AS q(id, x))"
    assert merge(spark, lake, f"t USING {twice} n ON t.id = n.id AND t.x > n.x WHEN MATCHED THEN DELETE")[0][0] == 1


def test_a_merge_that_updates_and_deletes_runs_in_tasks_of_spark(spark: SparkSession, lake: Path) -> None:
    clauses = "WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql(spark, f"MERGE INTO t USING news n ON t.id = n.id {clauses}", runner=OnSpark(spark, least_bytes=0))
    rows = LanceDataset(lake / "t.lance").to_table().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 10, "a"), (3, 5, "C"), (4, None, "d"), (5, 50, "E")]


def test_a_value_that_spark_would_cut_is_not_kept_by_way_of_spark(spark: SparkSession, lake: Path) -> None:
    times = pa.table({"id": [2], "x": [0], "at": pa.array([1], pa.timestamp("ns"))})
    write_dataset(times, lake / "times.lance")
    on = "MERGE INTO times t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = n.x"
    moment = "TIMESTAMP_NTZ '2026-01-01 00:00:00'"
    both = on.replace("MATCHED THEN", "MATCHED AND n.flag THEN")
    with pytest.raises(UnsupportedFeature, match="sets column 'at' beside an UPDATE that does not: Spark does"):
        sql(spark, f"{both} WHEN MATCHED THEN UPDATE SET at = {moment}")
    sql(spark, f"{on} + t.x WHEN NOT MATCHED THEN INSERT (id, at) VALUES (n.id, {moment})")
    assert LanceDataset(lake / "times.lance").to_table(filter="id = 2")["at"].cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize(
    ("on", "clauses"),
    [
        ("t.id = n.id", "WHEN MATCHED AND year(t.at) = 1970 THEN DELETE"),
        ("t.at = n.at", "WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET x = 0"),
    ],
)
def test_nanoseconds_of_the_table_are_not_read_by_way_of_spark(
    spark: SparkSession, lake: Path, on: str, clauses: str
) -> None:
    times = pa.table({"id": [2], "x": [0], "at": pa.array([1], pa.timestamp("ns"))})
    write_dataset(times, lake / "times.lance")
    source = "(SELECT id, flag, TIMESTAMP_NTZ '1970-01-01 00:00:00' AS at FROM news)"
    with pytest.raises(UnsupportedFeature, match="column 'at' of the table.*Spark cuts its nanoseconds"):
        sql(spark, f"MERGE INTO times t USING {source} n ON {on} {clauses}")
    assert LanceDataset(lake / "times.lance").version == 1


def test_only_rows_of_a_condition_are_inserted(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"id": [7, 8], "x": [1, 2], "s": ["p", "q"]}), lake / "more.lance")
    counts, rows = merge(spark, lake, "t USING more@v1 ON t.id = more.id WHEN NOT MATCHED AND more.x > 1 THEN INSERT *")
    assert counts == (1, 0, 0, 1)
    assert rows[-1] == (8, 2, "q")


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("WHEN MATCHED THEN UPDATE SET x = (SELECT 1)", "a subquery: join it to the source"),
        ("WHEN NOT MATCHED AND n.x IN (SELECT 5) THEN INSERT *", "a subquery: join it to the source"),
        ("ON t.id IN (SELECT n.id) WHEN MATCHED THEN DELETE", "a subquery: join it to the source"),
    ],
)
def test_what_a_merge_cannot_say_is_refused_by_name(spark: SparkSession, lake: Path, clauses: str, reason: str) -> None:
    with pytest.raises(UnsupportedFeature, match=reason):
        merge(spark, lake, f"t USING news n {clauses if clauses.startswith('ON') else f'ON t.id = n.id {clauses}'}")
    assert LanceDataset(lake / "t.lance").version == 1


@pytest.mark.parametrize(
    ("text", "counts", "expected"),
    [
        ("ON t.id > n.id AND n.x > 20 WHEN MATCHED THEN DELETE", (2, 0, 2, 0), [(1, 10, "a"), (2, 20, "b")]),
        ("ON t.id + 1 = n.id WHEN MATCHED AND n.flag THEN DELETE", (2, 0, 2, 0), [(2, 20, "b"), (3, 30, "c")]),
        (
            "ON t.id = n.id AND t.x > 25 WHEN NOT MATCHED THEN INSERT *",
            (2, 0, 0, 2),
            [(1, 10, "a"), (2, 20, "b"), (2, 21, "B"), (3, 30, "c"), (4, None, "d"), (5, 50, "E")],
        ),
        (
            "ON t.id = n.id AND n.flag WHEN MATCHED THEN UPDATE SET x = 0 WHEN NOT MATCHED BY SOURCE THEN DELETE",
            (4, 1, 3, 0),
            [(2, 0, "b")],
        ),
        (
            "ON t.id = n.id WHEN MATCHED THEN UPDATE SET id = t.id + n.x",
            (2, 2, 0, 0),
            [(1, 10, "a"), (4, None, "d"), (8, 30, "c"), (23, 20, "b")],
        ),
        (
            "ON t.id = n.id WHEN NOT MATCHED THEN INSERT (x) VALUES (n.x)",
            (1, 0, 0, 1),
            [*START, (None, 50, None)],
        ),
    ],
)
def test_on_may_be_any_condition_and_a_key_any_value(
    spark: SparkSession, lake: Path, text: str, counts: tuple[int, ...], expected: list[tuple[Any, ...]]
) -> None:
    assert merge(spark, lake, f"t USING news n {text}") == (counts, expected)


def test_names_in_doubt_and_duplicate_keys_are_refused(spark: SparkSession, lake: Path) -> None:
    on = "t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET"
    with pytest.raises(InvalidInput, match="x of MERGE is in both tables"):
        merge(spark, lake, f"{on} x = x + 1")
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        merge(spark, lake, f"{on} nope = n.x")
    with pytest.raises(InvalidInput, match=r"has no column x, s, which \* needs"):
        merge(spark, lake, "t USING (SELECT id FROM news) n ON t.id = n.id WHEN MATCHED THEN UPDATE SET *")
    with pytest.raises(InvalidInput, match="alias of the source"):
        merge(spark, lake, "t USING (SELECT id FROM news) ON t.id = n.id WHEN MATCHED THEN DELETE")
    twice = "(SELECT 2L AS id, 1 AS x, 's' AS s UNION ALL SELECT 2L, 2, 't')"
    with pytest.raises(InvalidInput):
        merge(spark, lake, f"t USING {twice} n ON t.id = n.id WHEN MATCHED THEN UPDATE SET *")
    assert LanceDataset(lake / "t.lance").version == 1


def test_a_merge_runs_in_tasks_of_spark(spark: SparkSession, lake: Path) -> None:
    text = "MERGE INTO t USING news n ON t.id = n.id WHEN MATCHED THEN DELETE"
    sql(spark, text, runner=OnSpark(spark, least_bytes=0))
    assert LanceDataset(lake / "t.lance").count_rows() == 2


@pytest.mark.parametrize(
    ("stored", "given", "is_equal"),
    [
        pytest.param(pa.array([0.1], pa.float32()), "CAST(0.1 AS DOUBLE)", False, id="a float and a double"),
        pytest.param(
            pa.array([20454], pa.int32()).cast(pa.date32()),
            "TIMESTAMP '2026-01-01 12:00:00'",
            False,
            id="a date and a moment",
        ),
        pytest.param(pa.array(["a"]), "'A' COLLATE UTF8_LCASE", True, id="texts of another collation"),
        pytest.param(pa.array([1], pa.int64()), "CAST(1 AS DOUBLE)", True, id="an integer and a double"),
        pytest.param(pa.array([1], pa.int64()), "1.50BD", False, id="an integer and a decimal"),
        pytest.param(pa.array([0.1], pa.float16()), "CAST(0.1 AS FLOAT)", False, id="a half float and a float"),
    ],
)
@pytest.mark.parametrize("value", ["n.x", "t.x + n.x"])
def test_a_key_of_another_type_matches_what_it_equals_in_spark(
    spark: SparkSession, lake: Path, stored: pa.Array, given: str, is_equal: bool, value: str
) -> None:
    write_dataset(pa.table({"k": stored, "x": [1]}), lake / "keyed.lance")
    on = "t.k = n.k" if "COLLATE" not in given else "t.k COLLATE UTF8_LCASE = n.k"
    source = f"(SELECT {given} AS k, 5L AS x) n ON {on}"
    counts = sql(spark, f"MERGE INTO keyed t USING {source} WHEN MATCHED THEN UPDATE SET x = {value}").collect()[0]
    assert counts["num_updated_rows"] == is_equal


def test_a_key_between_two_units_of_the_table_is_neither_matched_nor_inserted(spark: SparkSession, lake: Path) -> None:
    seconds = pa.array([1_767_225_600], pa.timestamp("s"))
    write_dataset(pa.table({"k": seconds, "x": [1]}), lake / "keyed.lance")
    on = "MERGE INTO keyed t USING (SELECT TIMESTAMP_NTZ '2026-01-01 00:00:00.5' AS k, 5L AS x) n ON t.k = n.k"
    with pytest.raises(LanceOpsError, match="column 'k'"):
        sql(spark, f"{on} WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT *")
    assert LanceDataset(lake / "keyed.lance").version == 1


def test_integers_of_any_length_are_joined(spark: SparkSession, lake: Path) -> None:
    kinds = {"short": pa.int16(), "unsigned": pa.uint64(), "decimal": pa.decimal128(12, 0)}
    for name, kind in kinds.items():
        write_dataset(pa.table({"id": pa.array([2, 3], kind), "x": [1, 1]}), lake / f"{name}.lance")
        clauses = "WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (n.id, n.x)"
        sql(spark, f"MERGE INTO {name} t USING news n ON t.id = n.id {clauses}")
        rows = LanceDataset(lake / f"{name}.lance").to_table().cast(pa.schema([("id", "int64"), ("x", "int64")]))
        assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(2, 22), (3, 6), (5, 50)]
