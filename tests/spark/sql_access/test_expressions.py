"""Pieces of expressions, as the text has them."""

from __future__ import annotations

import pytest

from lance_ops.spark.sql_access.expressions import conjunct_texts, conjuncts, parse_expression, sides_of_equality


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b AND c", ["a = b", "c"]),
        ("((a = to_char(b, '00')) AND (c AND d))", ["a = to_char(b, '00')", "c", "d"]),
        ("(a) AND CASE WHEN x AND y THEN z END = 1", ["a", "CASE WHEN x AND y THEN z END = 1"]),
        ("a BETWEEN 1 AND 2 AND b", ["a BETWEEN 1 AND 2 AND b"]),
        ("a AND b OR c", ["a AND b OR c"]),
        ("a AND NOT b AND (c OR d)", ["a", "NOT b", "c OR d"]),
        ("a = 'x AND y' AND b", ["a = 'x AND y'", "b"]),
    ],
)
def test_conditions_are_parted_where_and_joins_them(text: str, expected: list[str]) -> None:
    assert conjunct_texts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = to_char(b, '00')", ("a", "to_char(b, '00')")),
        ("(a == b + 1)", ("a", "b + 1")),
        ("a = '='", ("a", "'='")),
        ("a <= b", None),
        ("a <=> b", None),
        ("a = b = c", None),
        ("NOT a = b", None),
    ],
)
def test_an_equality_has_the_texts_of_its_sides(text: str, expected: tuple[str, str] | None) -> None:
    assert sides_of_equality(text) == expected


def test_a_program_may_write_thousands_of_conditions() -> None:
    text = " AND ".join(f"a <> {i}" for i in range(3000))
    assert len(list(conjuncts(parse_expression(text)))) == 3000
