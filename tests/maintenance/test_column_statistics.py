"""Statistics of columns, measured by tasks."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import UnsupportedFeature
from lance_ops.maintenance.health import ColumnStatistics
from tests.pickling_runner import PicklingRunner


def test_nulls_bounds_and_distinct_values_are_those_of_the_rows(dataset_uri: str) -> None:
    table = pa.table(
        {
            "n": pa.array([3, None, -5, 3, 9, 9], pa.int32()),
            "f": [1.5, float("nan"), None, -2.0, 1.5, float("nan")],
            "t": ["b", "é", "", "b", None, "a longer text that has more than sixteen bytes"],
            "d": [date(2026, 1, day) for day in (3, 1, 2, 1, 1, 3)],
            "b": [True, None, True, True, True, None],
            "m": pa.array([None, Decimal("1.50"), Decimal("-7.25"), None, None, None], pa.decimal128(9, 2)),
            "z": pa.nulls(6, pa.int64()),
            "l": [[1]] * 6,
        }
    )
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=2)
    assert dataset.stats.column_stats() == {
        "n": ColumnStatistics(6, 1, -5, 9, 3),
        "f": ColumnStatistics(6, 1, -2.0, 1.5, 3),
        "t": ColumnStatistics(6, 1, "", "é", 4),
        "d": ColumnStatistics(6, 0, date(2026, 1, 1), date(2026, 1, 3), 3),
        "b": ColumnStatistics(6, 2, True, True, 1),
        "m": ColumnStatistics(6, 4, Decimal("-7.25"), Decimal("1.50"), 2),
        "z": ColumnStatistics(6, 6, None, None, 0),
    }
    dataset.delete("n = 9")
    assert dataset.stats.column_stats(["n"], "n > 0") == {"n": ColumnStatistics(2, 0, 3, 3, 1)}
    assert dataset.stats.column_stats(["n"], "n > 100") == {"n": ColumnStatistics(0, 0, None, None, 0)}
    with pytest.raises(UnsupportedFeature, match="list"):
        dataset.stats.column_stats(["l"])


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_the_two_zeros_are_one_value_and_so_are_all_nans(dataset_uri: str, kind: pa.DataType) -> None:
    values = np.array([0.0, -0.0, np.nan, -np.nan, 1.5], kind.to_pandas_dtype())
    dataset = lance_ops.write_dataset(pa.table({"f": pa.array(values, kind)}), dataset_uri)
    assert dataset.stats.column_stats()["f"] == ColumnStatistics(5, 0, 0.0, 1.5, 3)


def test_many_distinct_values_are_estimated_from_small_messages(dataset_uri: str) -> None:
    numbers = np.arange(600_000) * 7919 % 100_003
    table = pa.table({"n": numbers, "t": [f"text {number % 20_000}" for number in numbers]})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=10_000)
    runner = PicklingRunner()
    found = dataset.stats.column_stats(runner=runner)
    assert runner.jobs == [("measure columns of", 2)]
    assert max(runner.outcome_bytes) < 20_000 and max(runner.task_bytes) < 2_000
    assert abs(found["n"].num_distinct - 100_003) < 10_000  # the hashes are the same in every run
    assert abs(found["t"].num_distinct - 20_000) < 2_000
    assert (found["n"].min, found["n"].max, found["n"].num_rows) == (0, 100_002, 600_000)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
        *(pa.timestamp("us", "UTC"), pa.duration("ms"), pa.large_string(), pa.binary(), pa.large_binary()),
        *(pa.binary(3), pa.decimal256(40, 2)),
    ],
    ids=str,
)
def test_every_type_with_an_order_is_measured(dataset_uri: str, kind: pa.DataType) -> None:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        values = pa.array([b"abc", None, b"abd", b"abc"], kind)
    elif pa.types.is_large_string(kind):
        values = pa.array(["abc", None, "abd", "abc"], kind)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = pa.array([1.0, None, 2.0, 1.0]).cast(kind)
    else:
        values = pa.array([86_400_000, None, 172_800_000, 86_400_000], pa.int64())
        if kind.bit_width < 64:
            values = pa.array([1, None, 2, 1], pa.int64())
        values = values.cast(pa.int32()).cast(kind) if kind.bit_width == 32 else values.cast(kind)
    dataset = lance_ops.write_dataset(pa.table({"x": values}), dataset_uri, max_rows_per_file=2)
    found = dataset.stats.column_stats()["x"]
    least, greatest = values[0].as_py(), values[2].as_py()
    assert found == ColumnStatistics(4, 1, least, greatest, 2)
