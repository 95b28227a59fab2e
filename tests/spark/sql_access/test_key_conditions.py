"""Conditions of DELETE that a join by key answers: which ones, and the texts of their queries."""

from __future__ import annotations

import pytest

from lance_ops.spark.sql_access.row_changes.key_conditions import key_condition


@pytest.mark.parametrize(
    ("condition", "column", "query"),
    [
        ("id IN (SELECT 1)", ("id",), "SELECT 1"),
        (
            "t.`odd name` in ( WITH q AS (SELECT ')') SELECT * FROM q )",
            ("t", "odd name"),
            "WITH q AS (SELECT ')') SELECT * FROM q",
        ),
        ("((id IN /* IN ( */ ((SELECT 1))))", ("id",), "(SELECT 1)"),
        ("`IN` IN (FROM t SELECT x)", ("IN",), "FROM t SELECT x"),
    ],
)
def test_the_query_is_the_users_own_text(condition: str, column: tuple[str, ...], query: str) -> None:
    found = key_condition(condition)
    assert found is not None
    assert (found.column, found.query.strip()) == (column, query)


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (1, 2)",
        "y IN (table) AND id IN (SELECT 1)",
        "x = 1 AND id IN (SELECT 1)",
        "id NOT IN (SELECT 1)",
        "NOT id IN (SELECT 1)",
        "a = 1 OR id IN (SELECT 1)",
        "id + 1 IN (SELECT 1)",
        "id IN (SELECT 1) AND a IN (SELECT 2)",
        "id IN (SELECT 1) AND EXISTS (SELECT 2)",
        "id IN (SELECT 1) AND a = (SELECT 2)",
        "CASE WHEN id IN (SELECT 1) THEN a ELSE b END",
        "id IN [SELECT 1]",
    ],
)
def test_a_condition_of_another_shape_is_none(condition: str) -> None:
    assert key_condition(condition) is None
