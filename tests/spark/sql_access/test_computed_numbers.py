"""What an UPDATE computes from numbers is what Spark computes, in tables whose types Spark does not have, too."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from tests.spark.sql_access.shown_rows import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUMBERS = pa.table(
    {
        "sh": pa.array([32767, 2, None], pa.int16()),
        "i": pa.array([2147483, -7, 5], pa.int32()),
        "l": pa.array([2**53 + 1, 1, 3], pa.int64()),
        "f": pa.array([0.1, -2.5, 16777216.0], pa.float32()),
        "d": pa.array([0.1, 1e300, 2.0]),
        "dec": pa.array([Decimal("0.10"), Decimal("1.55"), None], pa.decimal128(10, 2)),
        "long": pa.array([Decimal("1.500000000000000001"), Decimal(0), None], pa.decimal128(38, 18)),
        "half": pa.array([0.1, 1.5, None], pa.float16()),
        "small": pa.array([255, 1, 2], pa.uint8()),
    }
)
EXPRESSIONS = (
    *("sh + 1", "sh * 1000", "sh - i", "-sh", "abs(sh)", "i + 2147483648", "i * 2", "l - i", "i % 3", "sh % 2 + 40000"),
    *("l + 0.5", "l * 1.5", "i + 1.5", "dec + 1", "dec * 1.5", "dec - i", "dec + d", "1.5 + 2", "dec + -0.25"),
    *("f + 1", "f * i", "f + 0.1", "f + d", "f - dec", "d * 2", "d + l", "f / 0.5", "i / 3", "small + 1", "small * i"),
    *("coalesce(sh, i)", "coalesce(dec, 7.125)", "coalesce(dec, i)", "coalesce(sh, 1.5)", "coalesce(f, 1.5)"),
    *("CASE WHEN i > 0 THEN sh ELSE 1 END", "CASE WHEN i > 0 THEN l ELSE 0.1 END", "CASE WHEN i > 0 THEN f END"),
    *("l + -2147483648", "-(0.1)", "d + (5)", "abs(small) - half", "long + 1", "dec % 3", "half * half", "dec / 3"),
    *("CASE WHEN i > 0 THEN f ELSE i END", "CASE WHEN i > 0 THEN NULL ELSE dec END"),
)


@pytest.mark.parametrize("is_ansi", [True, False])
def test_numbers_are_computed_as_in_spark(run: Any, lake: Path, spark: SparkSession, is_ansi: bool) -> None:
    write_dataset(NUMBERS, lake / "computed.lance")
    columns = {f"c{number}": text for number, text in enumerate(EXPRESSIONS)}
    spark.conf.set("spark.sql.ansi.enabled", str(is_ansi).lower())
    try:
        query = ", ".join(f"{text} AS {name}" for name, text in columns.items())
        run(f"CREATE TABLE kept USING lance AS SELECT *, {query} FROM computed")
        run("CREATE OR REPLACE TABLE changed USING lance AS SELECT * FROM kept")
        run(f"UPDATE changed SET {', '.join(f'{name} = NULL' for name in columns)}")
        assert LanceDataset(lake / "changed.lance").to_table()["c0"].null_count == 3
        text = ", ".join(f"{name} = {text}" for name, text in columns.items())
        assert first(run(f"UPDATE changed SET {text}")) == {"num_affected_rows": 3}
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    kept, changed = (LanceDataset(lake / f"{name}.lance").to_table() for name in ("kept", "changed"))
    for name, text in columns.items():
        assert repr(changed[name].to_pylist()) == repr(kept[name].to_pylist()), text
