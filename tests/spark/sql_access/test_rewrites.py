"""Statements in a form that means the same and is read more easily."""

from __future__ import annotations

import pytest

from lance_ops.spark.sql_access.rewrites import move_insert_before_with, table_queries_as_selects

SELECT = "SELECT * FROM"


@pytest.mark.parametrize(
    "text",
    [
        "{} t",
        "{} lance.`/a b` VERSION AS OF 3 ORDER BY x LIMIT 2",
        "({} t) UNION ALL {} s EXCEPT {} u@v3",
        "EXPLAIN FORMATTED {} t",
        "WITH q AS ({} t) {} q",
        "SELECT (SELECT max(x) FROM ({} t)) WHERE 1 IN ({} s) AND EXISTS ({} u)",
        "INSERT INTO TABLE p {} t",
        "INSERT INTO p ({} t)",
        "INSERT OVERWRITE TABLE lance.`/a b` ({} t@v3)",
        "INSERT INTO p BY NAME ({} t)",
        "INSERT INTO p (x) ({} t)",
        "INSERT OVERWRITE p (a, `table`) {} t",
        "INSERT INTO p REPLACE WHERE x = 1 {} t",
        "CREATE TABLE p USING parquet AS {} t",
        "MERGE INTO TABLE USING ({} s) AS q ON true",
        "{} t |> WHERE x = 1",
    ],
)
def test_a_query_of_a_table_selects_all_columns(text: str) -> None:
    assert table_queries_as_selects(text.replace("{}", "TABLE")) == text.replace("{}", SELECT)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x AS table FROM t",
        "SELECT table x FROM table",
        "SELECT 1 AS table UNION ALL SELECT 2 AS table LIMIT 3",
        "SELECT * FROM listed(TABLE t)",
        "SELECT * FROM listed(TABLE(t)), `f`(TABLE t)",
        "INSERT INTO TABLE t VALUES (1)",
        "INSERT INTO t (table, x) SELECT table, x FROM s",
        "INSERT INTO t (table) VALUES (1)",
        "INSERT INTO t SELECT * FROM listed(TABLE s)",
        "INSERT INTO t VALUES (first(TABLE s))",
        "DESCRIBE TABLE t",
        "EXPLAIN TRUNCATE TABLE t",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "SELECT 'TABLE t', t.table",
    ],
)
def test_the_word_table_stays_where_it_begins_no_query(text: str) -> None:
    assert table_queries_as_selects(text) == text


@pytest.mark.parametrize(
    "queries", ["q AS (SELECT 1)", "insert AS (SELECT 1)", "q AS (SELECT 1), values (x) (TABLE t)"]
)
def test_insert_moves_before_with_whatever_the_queries_are_called(queries: str) -> None:
    moved = f"INSERT INTO t WITH {queries} SELECT * FROM q"
    assert move_insert_before_with(f"WITH {queries} INSERT INTO t SELECT * FROM q") == moved
    assert move_insert_before_with(moved) == moved
    query = f"WITH {queries} SELECT * FROM insert JOIN t"
    assert move_insert_before_with(query) == query
