"""Any text is an answer or a typed error, and no text costs more than its length."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.predicate import Assignment, Column, Expression, Minus, parse_filter, parse_value
from lance_ops.core.predicate.binding import NODES
from lance_ops.core.predicate.functions import FUNCTIONS
from lance_ops.errors import InvalidFilter, LanceOpsError, UnsupportedFeature
from tests.fuzz.predicates.tables import COLUMNS, rows

TABLE = rows(Random(1), 0, 20, wild=True)
(BATCH,) = TABLE.combine_chunks().to_batches()

_WORDS = r"""
    + - * / % = != <> < <= > >= <=> || AND OR NOT IS NULL IN LIKE ILIKE BETWEEN ( ) , . [ ] :: : ; ~ & | ^ << >>
    @ # ? { } $ ' " ` -- /* */ CASE WHEN THEN ELSE END CAST TRY_CAST AS EXTRACT FROM interval date timestamp
    time ESCAPE DISTINCT TRUE FALSE EXISTS ALL ANY ARRAY STRUCT SELECT OVER FILTER 0x 1e400 1e-400 1e999999999
    1.5 99999999999999999999999999 0 -1 '' 'a' '%' '\' x'41' x'4' 'Int64' 'month' BIGINT DECIMAL(3,1)
    DECIMAL(90,90) TIMESTAMP(99) VARCHAR(3) TINYINT é 😀 '1e999999999' '-1e999999999' '9999-12-31T23:59:59Z'
    '0000-00-00' [NULL] [[1]] current_date now() `b`
"""
WORDS = _WORDS.split()
PHRASES = [
    "interval '99999999999999999999 days'",
    "interval '-9223372036854775808 nanoseconds'",
    "interval '1e9 days'",
    "timestamp '9999-12-31 00:00:00'",
    "timestamp '1600-01-01 00:00:00.000000001'",
    "date '9999-99-99'",
    "decimal(3,1) '99999'",
    "decimal(38,2) '1e999999999'",
    "'\ud800'",
    "`\udfff`",
    "'\0'",
    "[1, 'a']",
]
TYPES = [
    "BIGINT",
    "DATE",
    "TIMESTAMP",
    "STRING",
    "DECIMAL(3,1)",
    "DECIMAL(76,70)",
    "DOUBLE",
    "BOOLEAN",
    "BINARY",
    "TINYINT",
]
ARROW_TYPES = [
    *("Int8", "Utf8", "Utf8View", "BinaryView", "Date64", "Time32(s)", "Time64(ns)", "Float16", "Null", "Struct()"),
    *(
        "List(Int64)",
        "Duration(s)",
        "Decimal256(76, 3)",
        "Decimal128(99, 1)",
        "FixedSizeBinary(2)",
        "Interval(DayTime)",
    ),
    *("Dictionary(Int8, Utf8)", 'Timestamp(ns, Some("Europe/Paris"))', 'Timestamp(ns, Some("Nowhere"))'),
]
ATOMS = st.sampled_from([*(column.path for column in COLUMNS), "st.x", "items[1]", "nope", *WORDS, *PHRASES])
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "<",
    ">=",
    "AND",
    "OR",
    "||",
    "LIKE",
    "IS",
    "<=>",
    "IN",
    "IS NOT DISTINCT FROM",
]


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(st.sampled_from([*FUNCTIONS, *NODES]), arguments).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, st.sampled_from(TYPES)).map(lambda parts: f"CAST({parts[0]} AS {parts[1]})"),
        st.tuples(inner, st.sampled_from(ARROW_TYPES)).map(lambda parts: f"arrow_cast({parts[0]}, '{parts[1]}')"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        st.tuples(inner, inner, inner).map(lambda parts: f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END"),
        st.tuples(inner, arguments).map(lambda parts: f"{parts[0]} IN ({parts[1]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"{parts[0]} BETWEEN {parts[1]} AND {parts[2]}"),
    )


JUNK = st.one_of(
    st.recursive(ATOMS, _larger, max_leaves=6),
    st.lists(ATOMS, max_size=8).map(" ".join),
    st.text(max_size=20),
)


@given(JUNK)
def test_any_filter_gives_an_answer_or_a_typed_error(text: str) -> None:
    try:
        predicate = parse_filter(text, TABLE.schema)
        assert len(predicate.mask(BATCH)) == BATCH.num_rows
        assert predicate.true_mask(BATCH).sum() <= BATCH.num_rows
        predicate.to_sql()
    except LanceOpsError:
        return


@given(JUNK)
def test_any_expression_gives_values_or_a_typed_error(text: str) -> None:
    try:
        value = parse_value(text, TABLE.schema)
        assert len(Assignment("x", value.stored_type, value).evaluate(BATCH)) == BATCH.num_rows
    except LanceOpsError:
        return


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("dec = '1e999999999'", 0),
        ("dec < '1e999999999' OR dec IS NULL", 20),
        ("dec < '-1e999999999'", 0),
        ("dec = '1e-999999999'", 0),
        ("dec = '0e999999999' AND dec != 0", 0),
        ("i64 < 1e999999999 OR i64 IS NULL", 20),
        (f"s LIKE '{'%a' * 5000}'", 0),
    ],
)
def test_a_number_of_a_billion_digits_is_compared_without_them(text: str, selected: int) -> None:
    assert parse_filter(text, TABLE.schema).true_mask(BATCH).sum() == selected


@pytest.mark.parametrize(
    "text",
    [
        "took = interval '99999999999999999999 days'",
        "took = interval '9223372036854775807 days'",
        f"took = interval '{'9' * 10_000} days'",
        "s = '\ud800'",
        "`\ud800` = 1",
        "(" * 3000 + "b" + ")" * 3000,
        "NOT " * 3000 + "b",
        "- " * 3000 + "1 = 1",
        "ints" + "[1]" * 3000,
        "i64" + " + 1" * 3000 + " = 1",
        "s" + " || s" * 300 + " = 'a'",
        "CASE WHEN b THEN " * 500 + "b" + " END" * 500,
        "abs(" * 3000 + "i64" + ")" * 3000 + " = 1",
        "date_trunc('month', ts_us) = 'x'",
        "took = 'x'",
    ],
)
def test_text_that_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(text, TABLE.schema)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("name", [f"DECIMAL({'9' * 5000}, 1)", f"TIMESTAMP({'9' * 5000})", "DECIMAL(77, 1)"])
def test_a_type_with_too_many_digits_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedFeature):
        parse_filter(f"CAST(i8 AS {name}) IS NULL", TABLE.schema)


@pytest.mark.parametrize("given", [{"a": 1}, ["b"], b"b", 1, None, True])
def test_what_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(InvalidFilter):
        parse_filter(given, TABLE.schema)
    with pytest.raises(InvalidFilter):
        parse_value(given, TABLE.schema)


@pytest.mark.parametrize(
    ("step", "column"),
    [
        ("({} + i64)", "i64"),
        ("({} || s)", "s"),
        ("coalesce({}, f64)", "f64"),
        ("abs({})", "f64"),
        ("(- {})", "f64"),
        ("nullif({}, s)", "s"),
        ("(CAST({} AS DOUBLE) = f64) IS NULL", "f64"),
    ],
)
def test_what_parses_at_the_most_levels_is_evaluated_printed_and_sent(step: str, column: str) -> None:
    text, deepest = column, ""
    for _ in range(400):
        text = step.format(text)
        try:
            parse_value(text, TABLE.schema)
        except LanceOpsError:
            break
        deepest = text
    value = parse_value(deepest, TABLE.schema)
    rows = BATCH.slice(0, 0)  # no number overflows
    assert len(value.evaluate(rows)) == 0
    assert pickle.loads(pickle.dumps(value)) == value
    assert value.to_sql() and hash(value) == hash(parse_value(deepest, TABLE.schema))


@pytest.mark.parametrize(
    "step",
    ["({} <=> b)", "({} BETWEEN b AND true)", "({} IN (b, NOT b))", "CASE {} WHEN b THEN b WHEN true THEN b END"],
)
def test_operands_that_are_used_twice_do_not_double_at_each_level(step: str) -> None:
    text = "b"
    for _ in range(40):
        text = step.format(text)
    with pytest.raises(InvalidFilter):
        parse_filter(text, TABLE.schema)


def test_negatives_ask_each_operand_for_its_type_once() -> None:
    asked = 0

    class Counted(Column):
        @property
        def type(self) -> pa.DataType:
            nonlocal asked
            asked += 1
            return pa.float64()

    value: Expression = Counted(("f64",), pa.float64())
    for _ in range(60):
        value = Minus(value)
    assert pa.types.is_float64(value.type) and asked == 1
