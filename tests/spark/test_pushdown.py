"""Spark's filters as predicates: what they match, and which are left to Spark. No session."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from lance_ops.spark.translation import fit, pushed_predicate, schema_for_spark

NAN = float("nan")
UTC = dt.UTC


def matches(asked: spark.Filter, column: pa.Array, name: str = "x") -> list[int] | None:
    """Return the rows for which the pushed filter is true, None if it is not pushed."""
    batch = pa.record_batch([column], names=[name])
    predicate = pushed_predicate(asked, batch.schema, schema_for_spark(batch.schema))
    if predicate is None:
        return None
    return [row for row, held in enumerate(predicate.mask(batch).to_pylist()) if held]


HALVES = pa.array([0.1, 2048.0], pa.float16())
X = ("x",)
NUMBERS = pa.array([1, 2, None, 3])
FLOATS = pa.array([1.0, NAN, None, -0.0])
TEXTS = pa.array(["alpha", "beta", None, "alphabet"])


@pytest.mark.parametrize(
    ("asked", "column", "expected"),
    [
        (spark.EqualTo(X, 2), NUMBERS, [1]),
        (spark.GreaterThan(X, 1), NUMBERS, [1, 3]),
        (spark.GreaterThanOrEqual(X, 2), NUMBERS, [1, 3]),
        (spark.LessThan(X, 2), NUMBERS, [0]),
        (spark.LessThanOrEqual(X, 2), NUMBERS, [0, 1]),
        (spark.Not(spark.EqualTo(X, 2)), NUMBERS, [0, 3]),
        (spark.In(X, (1, 3)), NUMBERS, [0, 3]),
        (spark.In(X, (1, None)), NUMBERS, [0]),
        (spark.Not(spark.In(X, (1, 3))), NUMBERS, [1]),
        (spark.Not(spark.In(X, (1, None))), NUMBERS, []),
        (spark.IsNull(X), NUMBERS, [2]),
        (spark.IsNotNull(X), NUMBERS, [0, 1, 3]),
        (spark.Not(spark.IsNull(X)), NUMBERS, [0, 1, 3]),
        (spark.EqualNullSafe(X, 2), NUMBERS, [1]),
        (spark.EqualNullSafe(X, None), NUMBERS, [2]),
        (spark.Not(spark.EqualNullSafe(X, 2)), NUMBERS, [0, 2, 3]),
        (spark.StringStartsWith(X, "alpha"), TEXTS, [0, 3]),
        (spark.StringEndsWith(X, "bet"), TEXTS, [3]),
        (spark.StringContains(X, "et"), TEXTS, [1, 3]),
        (spark.Not(spark.StringContains(X, "et")), TEXTS, [0]),
        # Spark's order of floats: NaN above all, equal to itself; zeros are equal.
        (spark.GreaterThan(X, 0.5), FLOATS, [0, 1]),
        (spark.EqualTo(X, NAN), FLOATS, [1]),
        (spark.EqualTo(X, 0.0), FLOATS, [3]),
        (spark.LessThan(X, 0.5), FLOATS, [3]),
        (spark.EqualTo(X, True), pa.array([True, False, None]), [0]),
        (spark.EqualTo(X, b"a"), pa.array([b"a", b"b"]), [0]),
        (spark.GreaterThan(X, Decimal("1.10")), pa.array([Decimal("1.10"), Decimal("1.20")]), [1]),
        (spark.EqualTo(X, dt.date(2020, 1, 1)), pa.array([dt.date(2020, 1, 1), None]), [0]),
        (
            spark.GreaterThan(X, dt.datetime(2020, 1, 1, tzinfo=UTC)),
            pa.array([dt.datetime(2020, 1, 1, 5, tzinfo=UTC), None], pa.timestamp("ms", "Asia/Tokyo")),
            [0],
        ),
        (
            spark.EqualTo(X, dt.datetime(2020, 1, 1)),
            pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us")),
            [0],
        ),
        # Spark sees these columns in another type, without loss.
        (spark.EqualTo(X, 200), pa.array([200, 1], pa.uint8()), [0]),
        (spark.GreaterThan(X, -1), pa.array([200, 1, None], pa.uint8()), [0, 1]),
        (spark.EqualTo(X, Decimal(2**64 - 1)), pa.array([2**64 - 1, 1], pa.uint64()), [0]),
        (spark.EqualTo(X, "a"), pa.array(["a", "b"], pa.large_string()), [0]),
        (spark.EqualTo(X, "a"), pa.array(["a", "b"]).dictionary_encode(), [0]),
        (spark.EqualTo(X, b"ab"), pa.array([b"ab", b"cd"], pa.binary(2)), [0]),
        (spark.GreaterThan(X, 1.25), pa.array([1.0, 1.5], pa.float16()), [1]),
        (spark.LessThan(X, 2048.0), HALVES, [0]),
        (spark.GreaterThan(X, NAN), HALVES, []),
    ],
)
def test_a_filter_matches_what_spark_would(asked: spark.Filter, column: pa.Array, expected: list[int]) -> None:
    assert matches(asked, column) == expected


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        (spark.EqualTo(X, dt.datetime(2020, 1, 1, tzinfo=UTC)), pa.array([0], pa.timestamp("ns", "UTC"))),
        (spark.EqualTo(X, Decimal(1)), pa.array([Decimal(1)], pa.decimal256(40, 0))),
        (spark.EqualTo(X, [1]), pa.array([[1]])),
        (spark.EqualTo(X, 2**70), NUMBERS),
        (spark.EqualTo(X, 0.1), HALVES),
        (spark.LessThan(X, 2049.0), HALVES),
        (spark.In(X, (0.5, 65521.0)), HALVES),
        (spark.EqualTo(("y",), 1), NUMBERS),
        (spark.EqualTo(("x", "a"), 1), NUMBERS),
    ],
    ids=[
        "cut instant",
        "long decimal",
        "list",
        "too large",
        "half",
        "next half",
        "no half",
        "no such column",
        "no struct",
    ],
)
def test_a_filter_with_another_meaning_in_spark_is_not_pushed_down(asked: spark.Filter, column: pa.Array) -> None:
    assert matches(asked, column) is None
    assert matches(spark.Not(asked), column) is None


def test_a_column_the_user_asked_for_in_another_type_is_left_to_spark() -> None:
    table = pa.schema([("x", pa.int64())])
    assert pushed_predicate(spark.EqualTo(X, "5"), table, pa.schema([("x", pa.string())])) is None


def test_filters_on_struct_fields_are_pushed_down_by_path() -> None:
    column = pa.array([{"a": 1}, None, {"a": 2}], pa.struct([("a", pa.int64())]))
    assert matches(spark.EqualTo(("x", "a"), 2), column) == [2]
    assert matches(spark.IsNull(("x", "a")), column) == [1]
    assert matches(spark.IsNull(X), column) is None


@pytest.mark.parametrize("value", [-1, 0, 255, 256])
def test_a_filter_on_a_widened_column_matches_as_in_spark(value: Any) -> None:
    column = pa.array([0, 255, None], pa.uint8())
    shape = schema_for_spark(pa.schema([("x", pa.uint8())]))
    shown = fit(pa.record_batch([column], names=["x"]), shape).column(0)
    for asked in (spark.EqualTo(X, value), spark.LessThan(X, value), spark.GreaterThanOrEqual(X, value)):
        assert matches(asked, column) == matches(asked, shown)
