"""What a change of a table computes from numbers is what Spark computes, in its types, or it is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.schema import CaseRule
from lance_ops.spark.sql_access.expressions import ExpressionWriter, SessionRules, Side
from tests.spark.sql_access.shown_rows import stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG = pa.decimal128(38, 18)
NUMBERS = pa.table(
    {
        "sh": pa.array([32767, 2, None], pa.int16()),
        "i": pa.array([2147483, -7, 5], pa.int32()),
        "l": pa.array([2**53 + 1, 1, 3], pa.int64()),
        "f": pa.array([0.1, -2.5, 16777216.0], pa.float32()),
        "d": pa.array([0.1, 1e300, 2.0]),
        "dec": pa.array([Decimal("0.10"), Decimal("1.55"), None], pa.decimal128(10, 2)),
        "long": pa.array([Decimal("1.500000000000000001"), Decimal(0), None], LONG),
        "small": pa.array([255, 1, 2], pa.uint8()),
    }
)
EXPRESSIONS = (
    *("sh + 1", "sh * 1000", "sh - i", "-sh", "abs(sh)", "i + 2147483648", "i * 2", "l - i", "i % 3", "sh % 2 + 40000"),
    *("l + 0.5", "l * 1.5", "i + 1.5", "dec + 1", "dec * 1.5", "dec - i", "dec + d", "1.5 + 2", "dec + -0.25"),
    *("f + 1", "f * i", "f + 0.1", "f + d", "f - dec", "d * 2", "d + l", "f / 0.5", "i / 3", "small + 1", "small * i"),
    *("coalesce(sh, i)", "coalesce(dec, 7.125)", "coalesce(dec, i)", "coalesce(sh, 1.5)", "coalesce(f, 1.5)"),
    *("CASE WHEN i > 0 THEN sh ELSE 1 END", "CASE WHEN i > 0 THEN l ELSE 0.1 END", "CASE WHEN i > 0 THEN f END"),
    *("CASE WHEN i > 0 THEN f ELSE i END", "CASE WHEN i > 0 THEN NULL ELSE dec END"),
)


def written(text: str, *, is_ansi: bool) -> str:
    """Return an expression over the numbers in this library's SQL."""
    rules = SessionRules(CaseRule.INSENSITIVE, in_utc=True, is_ansi=is_ansi)
    return ExpressionWriter({"": Side(NUMBERS.schema)}, rules).write(text)


@pytest.mark.parametrize("is_ansi", [True, False])
def test_numbers_are_computed_as_in_spark(run: Any, lake: Path, spark: SparkSession, is_ansi: bool) -> None:
    stored_numbers = write_dataset(NUMBERS, lake / "computed.lance")
    found = stored_numbers.to_table(columns={text: written(text, is_ansi=is_ansi) for text in EXPRESSIONS})
    spark.conf.set("spark.sql.ansi.enabled", str(is_ansi).lower())
    try:
        query = ", ".join(f"{text} AS `{number}`" for number, text in enumerate(EXPRESSIONS))
        expected = run(f"SELECT {query} FROM computed").toArrow()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    for text, column, wanted in zip(EXPRESSIONS, found.columns, expected.columns, strict=True):
        assert repr(column.to_pylist()) == repr(column_like(column, wanted)), text


def column_like(column: pa.ChunkedArray, wanted: pa.ChunkedArray) -> list[object]:
    """Return Spark's values; decimals with as many digits after the point as the other ones have."""
    is_decimal = pa.types.is_decimal(column.type) and pa.types.is_decimal(wanted.type)
    assert column.type == wanted.type or is_decimal or pa.types.is_integer(wanted.type), (column.type, wanted.type)
    return list((wanted.cast(column.type) if is_decimal else wanted).to_pylist())


@pytest.mark.parametrize("condition", ["i * i > 5", "l > i * 2000", "sh * sh = 4", "l * l > 0"])
def test_a_number_that_spark_would_not_hold_is_an_error(run: Any, lake: Path, condition: str) -> None:
    write_dataset(NUMBERS, lake / "computed.lance")
    with pytest.raises(InvalidInput, match="not in range|overflow"):
        run(f"DELETE FROM computed WHERE {condition}")
    assert LanceDataset(lake / "computed.lance").count_rows() == 3


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM computed WHERE long + 1 > dec", "more than 38 digits"),
        ("DELETE FROM computed WHERE coalesce(long, 123456789012345678901.5) = 1", "more than 38 digits"),
        ("DELETE FROM computed WHERE long = '1.5'", "a decimal with a text"),
        ("DELETE FROM computed WHERE dec NOT IN (1, '1.5')", "a decimal with a text"),
        ("DELETE FROM computed WHERE 0.1 IN (f, d)", "IN"),
        ("UPDATE computed SET d = 1.5 / 3", "1.5 / 3"),
        ("UPDATE computed SET d = i / 0.5", "0.5"),
        ("UPDATE texts SET s = s || d", "a part of a text"),
        ("UPDATE texts SET s = s || long || 'x'", "a part of a text"),
        ("UPDATE texts SET s = CASE WHEN d > 1 THEN d END", "the value of a text"),
        ("UPDATE texts SET s = long", "the value of a text"),
    ],
)
def test_what_spark_rounds_or_spells_otherwise_is_refused(run: Any, lake: Path, statement: str, reason: str) -> None:
    write_dataset(NUMBERS, lake / "computed.lance")
    write_dataset(NUMBERS.append_column("s", pa.array(["a", "b", None])), lake / "texts.lance")
    with pytest.raises(UnsupportedFeature, match=reason):
        run(statement)


def test_a_zero_that_is_written_with_a_point_has_no_sign(run: Any, lake: Path) -> None:
    write_dataset(NUMBERS, lake / "computed.lance")
    run("UPDATE computed SET d = -0.0 WHERE i > 0")
    run("UPDATE computed SET d = -0e0 WHERE i < 0")
    found = LanceDataset(lake / "computed.lance").to_table(columns=["i", "d"]).sort_by("i")
    assert repr(found["d"].to_pylist()) == "[-0.0, 0.0, 0.0]"


def test_whole_numbers_become_parts_of_texts(run: Any, lake: Path) -> None:
    run("UPDATE numbers SET s = s || id || 'x' WHERE id < 2")
    assert [row[2] for row in stored(lake)[:3]] == ["a0x", "b1x", "a"]
