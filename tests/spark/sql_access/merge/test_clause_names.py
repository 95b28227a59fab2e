"""`sql`: MERGE INTO whose clauses for unmatched rows name columns without their table, or columns of no row there.

The expected rows are those of a query with a plain join, in the same session.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput
from lance_ops.spark import sql
from tests.spark.sql_access.merge.merging import merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_KEPT = "SELECT id, x, s FROM t"
_NEW = "FROM news n LEFT ANTI JOIN t ON t.id = n.id"
_GONE = "FROM t LEFT ANTI JOIN news n ON t.id = n.id"
_MATCHED = "SELECT t.id, t.x, t.s FROM t SEMI JOIN news n ON t.id = n.id"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        pytest.param(
            "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (id, upper(`s`))",
            f"{_KEPT} UNION ALL SELECT n.id, NULL, upper(n.s) {_NEW}",
            id="inserted values",
        ),
        pytest.param(
            "WHEN NOT MATCHED AND x > 10 THEN INSERT * WHEN NOT MATCHED BY SOURCE AND x IS NULL THEN DELETE",
            f"{_KEPT} WHERE x IS NOT NULL UNION ALL SELECT n.id, n.x, n.s {_NEW} WHERE n.x > 10",
            id="conditions of both unmatched kinds",
        ),
        pytest.param(
            "WHEN MATCHED AND n.x < t.x THEN DELETE WHEN NOT MATCHED AND x > 10 THEN INSERT (id, x) VALUES (id, x + 1)",
            f"""
            SELECT t.id, t.x, t.s FROM t LEFT JOIN news n ON t.id = n.id WHERE NOT coalesce(n.x < t.x, false)
            UNION ALL SELECT n.id, n.x + 1, NULL {_NEW} WHERE n.x > 10
            """,
            id="joined rows",
        ),
        pytest.param(
            "WHEN NOT MATCHED BY SOURCE AND s = 'a' THEN UPDATE SET x = x + 1, s = concat(s, /* é */ 's')",
            f"{_MATCHED} UNION ALL SELECT t.id, if(s = 'a', x + 1, x), if(s = 'a', concat(s, 's'), s) {_GONE}",
            id="values of unmatched rows of the table",
        ),
        pytest.param(
            """
            WHEN NOT MATCHED AND exists(array(x, 7), x -> x = 7) AND 'é' <> s
            THEN INSERT (id, x, s) VALUES (id, aggregate(array(x), 0L, (s, y) -> s + y + x), CASE s WHEN s THEN s END)
            """,
            f"{_KEPT} UNION ALL SELECT n.id, 2 * n.x, n.s {_NEW}",
            id="functions of functions",
        ),
    ],
)
def test_unmatched_rows_have_the_columns_of_their_own_table(
    spark: SparkSession, lake: Path, clauses: str, expected: str
) -> None:
    wanted = sorted(tuple(row) for row in sql(spark, expected).collect())
    assert merge(spark, lake, f"t USING news n ON t.id = n.id {clauses}")[1] == wanted
    assert wanted != []


def test_a_history_of_values_is_kept_by_names_without_a_table(spark: SparkSession, lake: Path) -> None:
    rows = {"id": [1, 2, 3], "name": ["a", "b", "c"], "current": [True, True, False]}
    write_dataset(pa.table(rows), lake / "history.lance")
    sql(
        spark,
        """
        MERGE INTO history USING (SELECT 2L AS id, 'B' AS name, true AS current UNION ALL SELECT 9L, 'i', true) AS news
        ON history.id = news.id
        WHEN MATCHED AND history.name <> news.name THEN UPDATE SET name = news.name
        WHEN NOT MATCHED AND current THEN INSERT (id, name, current) VALUES (id, name, current)
        WHEN NOT MATCHED BY SOURCE AND current = true THEN UPDATE SET current = false, name = concat(name, '!')
        """,
    )
    left = LanceDataset(lake / "history.lance").to_table().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in left] == [(1, "a!", False), (2, "B", True), (3, "c", False), (9, "i", True)]


def test_a_field_of_a_struct_is_found_without_its_table(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"id": [1, 2], "n": [{"x": 10}, {"x": 20}]}), lake / "structs.lance")
    source = "(SELECT 2L AS id, named_struct('x', 21L) AS n UNION ALL SELECT 3L, named_struct('x', 30L))"
    on = f"MERGE INTO structs t USING {source} n ON t.id = n.id"
    sql(
        spark,
        f"""
        {on} WHEN MATCHED THEN UPDATE SET n = named_struct('x', t.n.x + n.n.x)
        WHEN NOT MATCHED AND n.x = 30 THEN INSERT (id, n) VALUES (id, named_struct('x', n.x + 1))
        WHEN NOT MATCHED BY SOURCE AND n.x = 10 THEN UPDATE SET id = n.x
        """,
    )
    left = LanceDataset(lake / "structs.lance").to_table().sort_by("id").to_pylist()
    assert [(row["id"], row["n"]["x"]) for row in left] == [(2, 41), (3, 31), (10, 10)]


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, s)", "s in WHEN NOT MATCHED reads t"),
        ("WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, upper(t.s))", r"upper\(t.s\) in WHEN NOT MATCHED reads t"),
        (
            "WHEN NOT MATCHED BY TARGET AND t.x > 0 THEN INSERT (id) VALUES (n.id)",
            "t.x > 0 in WHEN NOT MATCHED reads t",
        ),
        (
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id) WHEN NOT MATCHED AND s = 'a' THEN INSERT (id) VALUES (0)",
            "s = 'a' in WHEN NOT MATCHED reads t",
        ),
        ("WHEN NOT MATCHED BY SOURCE AND flag THEN DELETE", "flag in WHEN NOT MATCHED BY SOURCE reads n"),
    ],
)
def test_a_clause_of_unmatched_rows_reads_no_row_of_the_other_table(
    spark: SparkSession, lake: Path, clauses: str, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=f"{reason}, which has no row there"):
        merge(spark, lake, f"t USING (SELECT id, x, flag FROM news) n ON t.id = n.id {clauses}")
    assert LanceDataset(lake / "t.lance").version == 1


def test_a_word_that_may_be_a_column_or_the_clock_is_refused_unless_it_says_which(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_dataset(pa.table({"id": [1], "Current_Date": [5], "now": [3], "x": [0]}), tmp_path / "t.lance")
    head = "MERGE INTO t USING (SELECT 1L AS id, 7L AS x) n ON t.id = n.id WHEN MATCHED"
    for clause in ("THEN UPDATE SET x = current_date", "AND current_date > n.x THEN DELETE"):
        with pytest.raises(
            InvalidInput, match=r"current_date in MERGE may be a column or the clock: .*current_date\(\)"
        ):
            sql(spark, f"{head} {clause}", namespace=tmp_path)
    since = "year(current_date()) > 2000 AND year(current_timestamp) > 2000"
    sql(spark, f"{head} AND {since} AND now = 3 THEN UPDATE SET x = t.current_date + n.x", namespace=tmp_path)
    assert LanceDataset(tmp_path / "t.lance").to_table()["x"].to_pylist() == [12]
