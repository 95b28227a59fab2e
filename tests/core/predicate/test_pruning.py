"""Statistics rule out predicates that cannot match, and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_ops.core.predicate import ColumnStats, parse_filter

SCHEMA = pa.schema(
    [("i", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("ts", pa.timestamp("us"))]
)


def may_match(text: str, **stats: ColumnStats) -> bool:
    return parse_filter(text, SCHEMA).may_match(stats)


def known(low: Any, high: Any, kind: str = "int32", nulls: int | None = 0, **more: Any) -> ColumnStats:
    return ColumnStats(pa.scalar(low, kind), pa.scalar(high, kind), nulls, 10, **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 5", True),
        ("i = 11", False),
        ("i != 5", True),
        ("i < 0", False),
        ("i <= 0", True),
        ("i > 10", False),
        ("i >= 10", True),
        ("10 < i", False),
        ("NOT i <= 10", False),
        ("NOT (i > 3 OR i < 0)", True),
        ("i IN (-1, 11)", False),
        ("i IN (-1, 4)", True),
        ("i NOT IN (-1, 11)", True),
        ("i BETWEEN 11 AND 20", False),
        ("i = 5 AND i = 11", False),
        ("i = 5 OR i = 11", True),
        ("i IS NULL", False),
        ("i IS NOT NULL", True),
        ("i < 10000000000", True),
        ("i > 10000000000", False),
        ("(i > 10) IS NOT TRUE", True),
        ("(i > 10) IS TRUE", False),
        ("i + 1 > 100", True),
        ("i = NULL", False),
        ("FALSE", False),
        ("TRUE", True),
    ],
)
def test_bounds_rule_out_conditions_on_values_outside_them(text: str, expected: bool) -> None:
    assert may_match(text, i=known(0, 10)) is expected


def test_a_single_value_rules_out_its_negation() -> None:
    constant = known(7, 7)
    assert not may_match("i != 7", i=constant)
    assert not may_match("i NOT IN (7, 8)", i=constant)
    assert may_match("i != 7 OR i IS NULL", i=known(7, 7, nulls=1))
    assert not may_match("NOT b", b=known(True, True, "bool"))
    assert not may_match("b = false", b=known(True, True, "bool"))


def test_a_column_of_nulls_matches_only_a_test_for_null() -> None:
    all_null = ColumnStats(None, None, 10, 10)
    for text in ("i = 1", "i != 1", "NOT i = 1", "i IS NOT NULL", "i IN (1, 2)"):
        assert not may_match(text, i=all_null)
    assert may_match("i IS NULL", i=all_null)
    assert may_match("(i = 1) IS NULL", i=all_null)


def test_statistics_of_no_rows_match_nothing() -> None:
    empty = ColumnStats(None, None, 0, 0)
    assert not may_match("i = 1 OR i IS NULL OR NOT i = 1", i=empty)


@pytest.mark.parametrize(
    "stats", [{}, {"i": ColumnStats()}, {"i": ColumnStats(num_rows=5)}, {"f": known(0.0, 1.0, "float64")}]
)
def test_unknown_statistics_may_match_everything(stats: dict[str, ColumnStats]) -> None:
    for text in ("i = 1", "i != 1", "i IS NULL", "i IS NOT NULL", "NOT i > 3"):
        assert may_match(text, **stats)


def test_nan_is_above_every_bound() -> None:
    uncounted, none = known(0.0, 1.0, "double"), known(0.0, 1.0, "double", nan_count=0)
    for text in ("f > 5", "f != 0.5", "f >= CAST('NaN' AS DOUBLE)", "NOT f < 5"):
        assert may_match(text, f=uncounted)
    assert not may_match("f > 5", f=none)
    assert not may_match("f = CAST('NaN' AS DOUBLE)", f=none)
    assert may_match("f < CAST('NaN' AS DOUBLE)", f=none)
    assert not may_match("f < 0", f=uncounted)
    only_nan = ColumnStats(None, None, 0, 10, nan_count=10)
    assert not may_match("f < 1e300", f=only_nan)
    assert may_match("f > 1e300", f=only_nan)


def test_a_bound_that_is_nan_rules_out_nothing() -> None:
    nan = known(float("nan"), float("nan"), "double")
    assert may_match("f = 3", f=nan)
    assert may_match("f < 3", f=nan)


def test_zeros_of_both_signs_are_one_value() -> None:
    assert may_match("f = 0", f=known(-0.0, -0.0, "double", nan_count=0))
    assert not may_match("f < 0", f=known(-0.0, 1.0, "double", nan_count=0))


def test_a_truncated_maximum_admits_longer_values_with_that_prefix() -> None:
    cut = known("b", "ma", "string", max_truncated=True)
    assert may_match("s = 'mazurka'", s=cut)
    assert may_match("s > 'mazurka'", s=cut)
    assert may_match("starts_with(s, 'maz')", s=cut)
    assert not may_match("s >= 'mb'", s=cut)
    assert not may_match("s < 'b'", s=cut)
    assert not may_match("s = 'mazurka'", s=known("b", "ma", "string"))
    everything = known("b", "\U0010ffff", "string", max_truncated=True)
    assert may_match("s > '\U0010ffff\U0010ffff'", s=everything)


def test_text_patterns_are_pruned_by_their_prefix() -> None:
    stats = known("fa", "fz", "string")
    assert may_match("s LIKE 'f%x_'", s=stats)
    assert not may_match("s LIKE 'g%x_'", s=stats)
    assert may_match("s ILIKE 'F%'", s=stats)
    assert may_match("s LIKE '%x'", s=stats)
    assert not may_match("NOT starts_with(s, 'f')", s=stats)
    assert may_match("NOT starts_with(s, 'fa')", s=stats)
    assert may_match("regexp_like(s, '^g')", s=stats)


def test_bounds_of_another_type_are_cast_or_ignored() -> None:
    assert not may_match("i = 300", i=known(0, 10, "int64"))
    assert may_match("i = 300", i=known(0, 2**40, "int64"))
    assert may_match("i = 300", i=ColumnStats(pa.scalar("x"), pa.scalar("y"), 0, 1))


def test_columns_are_compared_by_their_bounds() -> None:
    schema = pa.schema([("x", pa.int32()), ("y", pa.int32()), ("wide", pa.int64())])
    predicate = parse_filter("x > y", schema)
    assert not predicate.may_match({"x": known(0, 5), "y": known(5, 9)})
    assert predicate.may_match({"x": known(0, 6), "y": known(5, 9)})
    assert parse_filter("x > wide", schema).may_match({"x": known(0, 5), "wide": known(5, 9, "int64")})


def test_nested_columns_are_found_by_their_path() -> None:
    schema = pa.schema([("st", pa.struct([("x", pa.int32())]))])
    assert not parse_filter("st.x = 11", schema).may_match({"st.x": known(0, 10)})
