"""`sql`: texts with quotes in them mean what they mean to Spark, in every statement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

from lance_ops.spark import table
from tests.spark.sql_access.shown_rows import first, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"


def test_a_text_means_the_same_to_spark_and_to_a_change(spark: SparkSession, run: Any, lake: Path) -> None:
    texts = ["'it''s'", '"it\'s"', "''''", '"a""b"', "'a\"b'", "'a\"\"b'", "''"]
    values = list(spark.sql(f"SELECT {', '.join(texts)}").first() or ())
    choice = " ".join(f"WHEN id = {number} THEN {text}" for number, text in enumerate(texts))
    run(f"UPDATE numbers SET s = CASE {choice} ELSE 'none' END")
    assert [row[2] for row in stored(lake)] == [*values, *["none"] * 3]
    assert first(run(f"DELETE FROM numbers WHERE s IN ({', '.join(texts)})")) == {"num_affected_rows": 7}


def test_a_text_means_the_same_in_queries_inserts_and_merges(run: Any, lake: Path) -> None:
    run("INSERT INTO numbers VALUES (20, 0, 'it''s')")
    source = "(SELECT 20L AS id, 'it''s' AS s) u ON t.id = u.id AND t.s = 'it''s'"
    run(f"MERGE INTO numbers t USING {source} WHEN MATCHED THEN UPDATE SET s = concat(t.s, '''')")
    assert [row.id for row in run("SELECT id FROM numbers WHERE s = 'it''s'''").collect()] == [20]
    assert first(run("DELETE FROM numbers WHERE s = 'it''s''' AND id IN (SELECT 20L)")) == {"num_affected_rows": 1}
    assert len(stored(lake)) == 10


def test_a_text_means_what_the_session_says_where_doubled_quotes_part_two_texts(
    spark: SparkSession, run: Any, lake: Path
) -> None:
    run("INSERT INTO numbers VALUES (20, 0, 'its'), (21, 0, \"it's\")")
    spark.conf.set(_CONSECUTIVE, True)
    try:
        assert spark.sql("SELECT 'it''s'").collect() == [("its",)]
        assert [row.id for row in run("SELECT id FROM numbers WHERE s = 'it''s'").collect()] == [20]
        source = "(SELECT 'it' AS a) u ON t.s = concat(u.a, 's') AND t.s = 'it''s'"
        assert first(run(f"MERGE INTO numbers t USING {source} WHEN MATCHED THEN DELETE"))["num_deleted_rows"] == 1
        assert first(run("DELETE FROM numbers WHERE s = 'it''s'")) == {"num_affected_rows": 0}
        assert first(run('DELETE FROM numbers WHERE s = "it\'s"')) == {"num_affected_rows": 1}
    finally:
        spark.conf.unset(_CONSECUTIVE)
    assert len(stored(lake)) == 10


@pytest.mark.interop
def test_a_column_with_a_back_quote_is_read_and_compared(spark: SparkSession, run: Any, lake: Path) -> None:
    columns = {"a`b": [1, 2, 3], "c": [4, 5, 6], "s": [{"z": 7}, {"z": 8}, {"z": 9}]}
    lance.write_dataset(pa.table(columns), lake / "quotes.lance")

    def rows(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in run(text).collect()]

    assert rows("SELECT `a``b` FROM quotes") == [(1,), (2,), (3,)]
    assert rows("SELECT `A``B`, s.z FROM quotes WHERE `a``b` > 1 AND c < 6") == [(2, 8)]
    assert rows("SELECT c FROM quotes WHERE `a``b` = 1 LIMIT 1") == [(4,)]
    assert rows("SELECT t.`a``b` FROM quotes t JOIN quotes u ON t.`a``b` = u.c - 3 WHERE t.c = 6") == [(3,)]
    query = table(spark, str(lake / "quotes.lance"))
    chosen = query.select("a`b", "s.z", "_fragid").load()
    assert chosen.columns == ["a`b", "z", "_fragid"]
    assert [tuple(row) for row in chosen.collect()] == [(1, 7, 0), (2, 8, 0), (3, 9, 0)]
    assert query.select("A`B").load().columns == ["a`b"]
