"""`sql`: MERGE INTO."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark import OnSpark, sql
from tests.spark.sql_access.merge.merging import START, add_rows, merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


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


def test_a_key_is_computed_by_sparks_function_as_it_is_written(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"code": ["7", "00007"], "x": [0, 0]}), lake / "codes.lance")
    on = "MERGE INTO codes t USING (SELECT 7 AS n UNION ALL SELECT 8) n ON t.code = to_char(n.n, '00000')"
    sql(spark, f"{on} WHEN MATCHED THEN UPDATE SET x = 1")
    sql(spark, f"{on} WHEN NOT MATCHED THEN INSERT (code, x) VALUES (to_char(n.n, '00000'), 2)")
    sql(spark, f"{on} WHEN MATCHED AND n.n = 8 THEN UPDATE SET code = to_char(n.n, '9')")
    rows = LanceDataset(lake / "codes.lance").to_table().to_pylist()
    assert sorted((row["code"], row["x"]) for row in rows) == [("00007", 1), ("7", 0), ("8", 2)]


@pytest.mark.parametrize("on", ["t.id = n.id", "t.id = n.id AND t.x > 0"])
@pytest.mark.parametrize("inserts", ["", " WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)"])
def test_several_source_rows_may_delete_a_row(spark: SparkSession, lake: Path, on: str, inserts: str) -> None:
    source = "(SELECT explode(array(2L, 2L, 9L, 9L)) AS id)"
    counts, rows = merge(spark, lake, f"t USING {source} n ON {on} WHEN MATCHED THEN DELETE{inserts}")
    assert counts == ((3, 0, 1, 2) if inserts else (1, 0, 1, 0))
    assert [row[0] for row in rows] == [1, 3, 4, *([9, 9] if inserts else [])]


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


def test_only_rows_of_a_condition_are_inserted(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"id": [7, 8], "x": [1, 2], "s": ["p", "q"]}), lake / "more.lance")
    counts, rows = merge(spark, lake, "t USING more@v1 ON t.id = more.id WHEN NOT MATCHED AND more.x > 1 THEN INSERT *")
    assert counts == (1, 0, 0, 1)
    assert rows[-1] == (8, 2, "q")


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("WHEN MATCHED THEN UPDATE SET x = (SELECT n.x)", "a subquery that reads a row of the merge"),
        ("WHEN NOT MATCHED AND n.x IN (SELECT 5) THEN INSERT *", "a subquery of several rows: join it to the source"),
        ("ON t.id IN (SELECT n.id) WHEN MATCHED THEN DELETE", "a subquery of several rows: join it to the source"),
    ],
)
def test_what_a_merge_cannot_say_is_refused_by_name(spark: SparkSession, lake: Path, clauses: str, reason: str) -> None:
    with pytest.raises(UnsupportedFeature, match=reason):
        merge(spark, lake, f"t USING news n {clauses if clauses.startswith('ON') else f'ON t.id = n.id {clauses}'}")
    assert LanceDataset(lake / "t.lance").version == 1


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
