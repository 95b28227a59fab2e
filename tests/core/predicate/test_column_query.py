"""Predicates become queries on one column, and conjunctions are split into served and remaining conjuncts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_ops.core.predicate import (
    Bound,
    Column,
    ColumnQuery,
    Equals,
    NotNull,
    Nulls,
    Range,
    column_query,
    conjuncts,
    parse_filter,
    split_servable,
)
from lance_ops.core.predicate.pushdown import column_queries
from lance_ops.core.predicate.tree import order_key

SCHEMA = pa.schema([("i", pa.int32()), ("j", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_())])
INTEGER, F, S, B = (Column((name,), SCHEMA.field(name).type) for name in "ifsb")


def number(value: int, inclusive: bool) -> Bound:
    return Bound(pa.scalar(value, pa.int32()), inclusive)


def text(value: str, inclusive: bool) -> Bound:
    return Bound(pa.scalar(value), inclusive)


def integers(*values: int) -> pa.Array:
    return pa.array(values, pa.int32())


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        ("i = 1", Equals(INTEGER, integers(1))),
        ("1 < i", Range(INTEGER, number(1, False))),
        ("i <= 1.5", Range(INTEGER, None, number(1, True))),
        ("i IN (3, 1, 3, NULL)", Equals(INTEGER, integers(1, 3))),
        ("i = 3 OR i IN (1, 2)", Equals(INTEGER, integers(1, 2, 3))),
        ("i BETWEEN 1 AND 3", Range(INTEGER, number(1, True), number(3, True))),
        ("i > 1 AND i >= 1 AND i < 9 AND i <= 20", Range(INTEGER, number(1, False), number(9, False))),
        ("i IN (1, 5, 9) AND i > 3 AND i IS NOT NULL", Equals(INTEGER, integers(5, 9))),
        ("i IN (1, 5) AND i IN (5, 6)", Equals(INTEGER, integers(5))),
        ("NOT i > 3", Range(INTEGER, None, number(3, True))),
        ("i IS NULL", Nulls(INTEGER)),
        ("i IS NOT NULL", NotNull(INTEGER)),
        ("(i > 3) IS TRUE", Range(INTEGER, number(3, False))),
        ("b", Equals(B, pa.array([True]))),
        ("NOT b", Equals(B, pa.array([False]))),
        ("starts_with(s, 'ab')", Range(S, text("ab", True), text("ac", False))),
        ("s LIKE 'ab%' AND s > 'abx'", Range(S, text("abx", False), text("ac", False))),
        ("starts_with(s, '\U0010ffff')", Range(S, text("\U0010ffff", True))),
        ("starts_with(s, '\ud7ff')", Range(S, text("\ud7ff", True), text("\ue000", False))),
        ("starts_with(s, '')", NotNull(S)),
        ("i != 1", None),
        ("i = 1 OR i IS NULL", None),
        ("i = 1 OR j = 1", None),
        ("i = 1 AND j = 1", None),
        ("i IS NULL AND i = 1", None),
        ("i + 1 = 2", None),
        ("s LIKE '%b'", None),
        ("i NOT IN (1, 2)", None),
        ("TRUE", None),
    ],
)
def test_a_predicate_on_one_column_becomes_the_expected_query(sql: str, query: ColumnQuery | None) -> None:
    assert column_query(parse_filter(sql, SCHEMA)) == query


def test_a_range_may_start_at_nan() -> None:
    query = column_query(parse_filter("f >= CAST('NaN' AS DOUBLE) AND f > 1", SCHEMA))
    assert isinstance(query, Range)
    assert query.lower is not None
    assert str(query.lower.value) == "nan"
    assert query.admits(pa.scalar(float("nan")))
    assert not query.admits(pa.scalar(float("inf")))


def test_split_passes_the_conjuncts_of_a_column_together_and_then_each_alone() -> None:
    predicate = parse_filter("i > 1 AND j = 2 AND i < 9 AND s LIKE '%x' AND f > 0 AND f != 3", SCHEMA)
    served: list[ColumnQuery]
    served, rest = split_servable(predicate, lambda part: column_query(part) if part.columns() != ("j",) else None)
    assert served == [
        Range(INTEGER, number(1, False), number(9, False)),
        Range(F, Bound(pa.scalar(0.0), False)),
    ]
    assert rest == parse_filter("j = 2 AND ends_with(s, 'x') AND f != 3", SCHEMA)


def test_split_returns_no_rest_if_all_is_served_and_everything_if_nothing_is() -> None:
    predicate = parse_filter("i = 1 AND j = 2", SCHEMA)
    assert split_servable(predicate, lambda part: part) == ([*conjuncts(predicate)], None)
    assert split_servable(predicate, lambda part: None) == ([], predicate)
    assert split_servable(parse_filter("TRUE", SCHEMA), lambda part: part) == ([], None)


def test_split_passes_the_parts_that_are_served_alone_together_once_more() -> None:
    predicate = parse_filter("i > 1 AND i % 2 = 1 AND i < 9", SCHEMA)
    served, rest = split_servable(predicate, column_query)
    assert served == [Range(INTEGER, number(1, False), number(9, False))]
    assert rest == parse_filter("i % 2 = 1", SCHEMA)


def test_split_asks_the_next_function_only_for_the_columns_of_which_the_first_serves_nothing() -> None:
    predicate = parse_filter("i > 1 AND i != 3 AND f != 3 AND f != 4", SCHEMA)
    served, rest = split_servable(predicate, column_query, lambda part: part)
    assert served == [Range(INTEGER, number(1, False)), parse_filter("f != 3 AND f != 4", SCHEMA)]
    assert rest == parse_filter("i != 3", SCHEMA)


def test_two_lists_look_at_each_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ", ".join(map(str, range(300))), ", ".join(map(str, range(200, 500)))
    predicate = parse_filter(f"i IN ({first}) AND i IN ({second})", SCHEMA)
    looked_at: list[pa.Scalar] = []

    def recorded(value: pa.Scalar) -> Any:
        looked_at.append(value)
        return order_key(value)

    monkeypatch.setattr(column_queries, "order_key", recorded)
    query = column_query(predicate)
    assert isinstance(query, Equals)
    assert query.values.to_pylist() == [*range(200, 300)]
    assert len(looked_at) <= 1_000


def test_two_lists_share_nan_and_both_zeros() -> None:
    nan = "CAST('NaN' AS DOUBLE)"
    query = column_query(parse_filter(f"f IN (0.0, {nan}, 1) AND f IN ({nan}, -0.0, 2)", SCHEMA))
    assert isinstance(query, Equals)
    assert [str(value) for value in query.values.to_pylist()] in (["0.0", "nan"], ["-0.0", "nan"])
