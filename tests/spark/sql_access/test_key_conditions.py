"""Conditions of DELETE and UPDATE that a join by key answers: which ones, and the texts of their parts."""

from __future__ import annotations

import pytest

from lance_ops.spark.sql_access.merge import key_condition


@pytest.mark.parametrize(
    ("condition", "column", "query", "rest"),
    [
        ("id IN (SELECT 1)", ("id",), "SELECT 1", None),
        (
            "t.`odd name` in ( WITH q AS (SELECT ')') SELECT * FROM q )",
            ("t", "odd name"),
            "WITH q AS (SELECT ')') SELECT * FROM q",
            None,
        ),
        ("a = 1 AND id IN (SELECT 'IN (') AND b IN (3)", ("id",), "SELECT 'IN ('", "a = 1 AND TRUE AND b IN (3)"),
        ("((id IN (SELECT 1))) AND s LIKE '% IN (SELECT'", ("id",), "SELECT 1", "((TRUE)) AND s LIKE '% IN (SELECT'"),
        (
            "x BETWEEN 1 AND 2 AND /* IN ( */ id IN (SELECT 1)",
            ("id",),
            "SELECT 1",
            "x BETWEEN 1 AND 2 AND /* IN ( */ TRUE",
        ),
        ("y IN (table, 2) AND id IN (SELECT 1)", ("id",), "SELECT 1", "y IN (table, 2) AND TRUE"),
        ("y IN (table) AND id IN (SELECT 1)", ("id",), "SELECT 1", "y IN (table) AND TRUE"),
        ("y IN (values + 1) AND id IN (SELECT 1)", ("id",), "SELECT 1", "y IN (values + 1) AND TRUE"),
        ("y IN ((table), 2) AND id IN ((SELECT 1))", ("id",), "(SELECT 1)", "y IN ((table), 2) AND TRUE"),
    ],
)
def test_the_parts_are_the_users_own_texts(
    condition: str, column: tuple[str, ...], query: str, rest: str | None
) -> None:
    found = key_condition(condition)
    assert found is not None
    assert (found.column, found.query.strip(), found.rest) == (column, query, rest)


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (1, 2)",
        "id NOT IN (SELECT 1)",
        "NOT id IN (SELECT 1)",
        "a = 1 OR id IN (SELECT 1)",
        "id + 1 IN (SELECT 1)",
        "id IN (SELECT 1) AND a IN (SELECT 2)",
        "id IN (SELECT 1) AND EXISTS (SELECT 2)",
        "id IN (SELECT 1) AND a = (SELECT 2)",
        "CASE WHEN id IN (SELECT 1) THEN a ELSE b END",
    ],
)
def test_a_condition_of_another_shape_is_none(condition: str) -> None:
    assert key_condition(condition) is None
