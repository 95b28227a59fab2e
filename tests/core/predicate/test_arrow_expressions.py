"""pyarrow expressions become the same predicates as the SQL beside them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate import parse_filter

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("raw", pa.binary()),
        ("b", pa.bool_()),
        ("ts", pa.timestamp("ns")),
        ("utc", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("dec", pa.decimal128(8, 2)),
        ("tags", pa.list_(pa.string())),
        ("st", pa.struct([("X y", pa.int32())])),
        ("Ünï`cödé", pa.int32()),
    ]
)
INT, F, S, B = pc.field("i"), pc.field("f"), pc.field("s"), pc.field("b")


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (INT > 5, "i > 5"),
        (pc.scalar(5) > INT, "i < 5"),
        (INT == 2**40, "i IS NULL AND NULL"),
        ((INT >= 1) & (INT <= 3) | ~(S != "it's"), "(i >= 1 AND i <= 3) OR s = 'it''s'"),
        (~(INT < 3), "i >= 3"),
        (B, "b"),
        (~B, "NOT b"),
        (INT.is_null(), "i IS NULL"),
        (INT.is_valid(), "i IS NOT NULL"),
        (pc.Expression._call("true_unless_null", [INT]), "i IS NOT NULL OR NULL"),
        (F.is_null(nan_is_null=True), "f IS NULL OR isnan(f)"),
        (F.is_nan(), "isnan(f)"),
        (F > 0.1, "f > 0.1"),
        (INT.isin([1, 2, 2**40]), "i IN (1, 2)"),
        (~INT.isin([1, None, 3]), "i NOT IN (1, 3, NULL)"),
        (S.isin(["b", "a"]), "s IN ('a', 'b')"),
        (pc.field("kind") == "a", "kind = 'a'"),
        (pc.field("raw") == b"\x00a", "raw = X'0061'"),
        (pc.starts_with(S, "a"), "starts_with(s, 'a')"),
        (pc.ends_with(S, "a"), "ends_with(s, 'a')"),
        (pc.match_substring(S, "a"), "contains(s, 'a')"),
        (pc.match_like(S, "a_%"), "s LIKE 'a_%'"),
        (pc.match_like(S, "A%", ignore_case=True), "s ILIKE 'A%'"),
        (pc.match_substring_regex(S, "^a", ignore_case=True), "regexp_like(s, '^a', 'i')"),
        (pc.utf8_upper(S) == "A", "upper(s) = 'A'"),
        (pc.utf8_length(S) > 3, "length(s) > 3"),
        (pc.list_value_length(pc.field("tags")) == 2, "array_length(tags) = 2"),
        (INT + 1 == 2, "i + 1 = 2"),
        (INT * 2 - 1 > 4, "i * 2 - 1 > 4"),
        (pc.negate(INT) == 1, "-i = 1"),
        (pc.abs(INT) == 1, "abs(i) = 1"),
        (INT.cast("int8") == 1, "CAST(i AS TINYINT) = 1"),
        (pc.coalesce(INT, 7) == 7, "coalesce(i, 7) = 7"),
        (pc.if_else(B, INT, 7) == 7, "CASE WHEN b THEN i ELSE 7 END = 7"),
        (pc.field("ts") == dt.datetime(2020, 1, 1), "ts = '2020-01-01'"),
        (pc.field("ts") > pa.scalar(1, pa.timestamp("ns")), "ts > timestamp(9) '1970-01-01 00:00:00.000000001'"),
        (pc.field("utc") == dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "utc = '2020-01-01T00:00:00Z'"),
        (pc.field("day") < dt.date(2020, 1, 1), "day < date '2020-01-01'"),
        (pc.field("dec") == Decimal("1.1"), "dec = 1.1"),
        (pc.field("dec") <= 1.105, "dec <= 1.10"),
        (pc.field("st", "X y") == 1, "st.`X y` = 1"),
        (pa.scalar(None, pa.int32()) == INT, "NULL"),
    ],
    ids=str,
)
def test_a_pyarrow_expression_becomes_the_same_predicate_as_its_sql(expression: pc.Expression, sql: str) -> None:
    assert parse_filter(expression, SCHEMA) == parse_filter(sql, SCHEMA)


def test_a_column_name_with_a_back_quote_and_any_letters_is_found() -> None:
    assert parse_filter(pc.field("Ünï`cödé") > 1, SCHEMA).mask(
        pa.table({"Ünï`cödé": pa.array([1, 2], pa.int32())})
    ).to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (pc.starts_with(S, "a", ignore_case=True), "option ignore_case"),
        (pc.bit_wise_and(INT, 1) == 1, "function bit_wise_and"),
        (pc.field(0) == 1, "field"),
    ],
    ids=str,
)
def test_an_expression_without_a_translation_is_refused_by_name(expression: pc.Expression, words: str) -> None:
    with pytest.raises((UnsupportedFeature, NotImplementedError), match=words):
        parse_filter(expression, SCHEMA)


def test_an_expression_that_does_not_fit_the_schema_is_refused_with_the_column() -> None:
    with pytest.raises(InvalidFilter, match="no column 'I'; did you mean 'i'"):
        parse_filter(pc.field("I") == 1, SCHEMA)
    with pytest.raises(InvalidFilter, match="not a condition"):
        parse_filter(INT + 1, SCHEMA)
    with pytest.raises(InvalidFilter, match="s is string and cannot be compared with 1"):
        parse_filter(S == 1, SCHEMA)
    deep = INT
    for _ in range(2000):
        deep = deep + 1
    with pytest.raises(InvalidFilter, match="nested too deeply"):
        parse_filter(deep == 1, SCHEMA)


def test_true_unless_null_is_unknown_for_null_as_in_pyarrow() -> None:
    rows = pa.record_batch({"i": pa.array([1, None], pa.int32())})
    condition = pc.Expression._call("true_unless_null", [INT])
    assert parse_filter(condition, rows.schema).mask(rows).to_pylist() == [True, None]
    assert parse_filter(~condition, rows.schema).mask(rows).to_pylist() == [False, None]
