"""Expressions have the expected values: casts, remainders and functions of text."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate import casts, parse_value
from lance_ops.core.predicate.casts import cast_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(number AS STRING)", ["0.0", "-0.0", "1e300", "0.00001234", "NaN"]),
        (
            "CAST(stamp AS STRING)",
            ["1970-01-01T00:00:00", "2020-01-02T03:04:05.600", "1969-12-31T23:59:59.999999", None, None],
        ),
        ("CAST(whole AS DECIMAL(4, 2))", [1.0, 2.0, -3.0, 0.0, None]),
        ("TRY_CAST(whole AS DECIMAL(4, 3))", [1.0, 2.0, -3.0, 0.0, None]),
        ("TRY_CAST(number AS DECIMAL(4, 2))", [0.0, 0.0, None, 0.0, None]),
        ("CAST(stamp AS BIGINT)", [0, 1577934245600000, -1, None, None]),
        ("concat(number, '!')", ["0.0!", "-0.0!", "1e300!", "0.00001234!", "NaN!"]),
        ("upper(text)", ["STRASSE", "FFİ", "É", "", None]),
        ("lower(text)", ["straße", "\ufb00i\u0307", "é", "", None]),
        ("regexp_match(text, '(t)(x)?(r)')", [["t", "r"], None, None, None, None]),
        ("regexp_match(text, '\\w$')", [["e"], ["İ"], ["É"], None, None]),
    ],
)
def test_an_expression_has_its_values(text: str, expected: list[Any]) -> None:
    rows = pa.record_batch(
        {
            "number": [0.0, -0.0, 1e300, 1.234e-5, math.nan],
            "whole": [1, 2, -3, 0, None],
            "stamp": pa.array([0, 1577934245600000, -1, None, None], pa.timestamp("us")),
            "text": ["Straße", "\ufb00İ", "É", "", None],
        }
    )
    values = parse_value(text, rows.schema).evaluate(rows).to_pylist()
    assert [float(value) if isinstance(value, Decimal) else value for value in values] == expected


def test_a_cast_to_decimal_refuses_what_its_digits_do_not_hold() -> None:
    rows = pa.record_batch({"whole": [1, 1000], "number": [1.0, math.nan]})
    for column in rows.schema.names:
        with pytest.raises((pa.ArrowInvalid, InvalidInput)):
            parse_value(f"CAST({column} AS DECIMAL(4, 2))", rows.schema).evaluate(rows)


WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(WHOLE, min_size=1, max_size=8), WHOLE.filter(bool), st.booleans())
def test_a_remainder_has_the_sign_of_the_dividend(numbers: list[int], divisor: int, with_null: bool) -> None:
    columns = {"id": pa.array([*numbers, None] if with_null else numbers, pa.int64())}
    batch = pa.record_batch({**columns, "divisor": pa.array([divisor] * len(columns["id"]), pa.int64())})
    found = [parse_value(text, batch.schema).evaluate(batch) for text in (f"id % {divisor}", "id % divisor")]
    expected = [number - divisor * int(Fraction(number, divisor)) for number in numbers]
    for remainders in found:
        assert remainders.to_pylist() == [*expected, *([None] if with_null else [])]


@pytest.mark.parametrize(
    ("texts", "most_casts"),
    [
        ([str(row) if row != 777 else "none" for row in range(10_000)], 50),
        ([str(row) if row % 10 else "n/a" for row in range(10_000)], 50),
        ([f"n/a {row}" for row in range(1_000)], 1_500),
    ],
)
def test_a_lenient_cast_tries_again_only_what_does_not_fit(
    texts: list[str], most_casts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(values: Any, target: pa.DataType) -> Any:
        made.append(len(values))
        return cast_values(values, target)

    monkeypatch.setattr(casts, "cast_values", counted)
    cast = casts.cast_each(pa.array([*texts, None]), pa.int64())
    assert cast.to_pylist() == [*(int(text) if text.isdecimal() else None for text in texts), None]
    assert len(made) <= most_casts


def test_a_lenient_cast_of_numbers_keeps_those_that_fit() -> None:
    numbers = pa.array([0.5, math.nan, None, 1e300, -7.0, *range(20)])
    cast = parse_value("TRY_CAST(x AS INT)", pa.schema([("x", pa.float64())]))
    assert cast.evaluate(pa.record_batch({"x": numbers})).to_pylist() == [0, None, None, None, -7, *range(20)]
