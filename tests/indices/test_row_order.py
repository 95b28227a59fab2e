"""Rows sorted in any order, in memory or through the disk, equal a stable sort by Python."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.indices.external_sort import sort_rows
from lance_ops.indices.row_order import FIRST_COLUMN, Direction, RowOrder
from lance_ops.indices.sorted_merge import merge_sorted

DIRECTIONS = st.builds(Direction, st.booleans(), st.booleans())
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-2, 2),
        st.none() | st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]),
        st.none() | st.sampled_from(["", "a", "B", "b", "é", "😀", "a\x00"]),
    ),
    max_size=40,
)


def rank_of(value: Any) -> tuple[Any, ...]:
    """Order NaN after all numbers and -0.0 before 0.0."""
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value)
    return (value,)


def compared(left: Any, right: Any, direction: Direction) -> int:
    if left is None or right is None:
        return ((right is None) - (left is None)) * (1 if direction.nulls_first else -1)
    order = (rank_of(left) > rank_of(right)) - (rank_of(left) < rank_of(right))
    return order if direction.ascending else -order


def sorted_stably(rows: list[tuple[Any, ...]], directions: list[Direction]) -> list[int]:
    def order(left: int, right: int) -> int:
        columns = zip(rows[left], rows[right], directions, strict=False)
        return next((found for a, b, each in columns if (found := compared(a, b, each))), 0)

    return sorted(range(len(rows)), key=functools.cmp_to_key(order))


@given(ROWS, st.lists(DIRECTIONS, min_size=1, max_size=3), st.sampled_from([1, 1000, 1 << 30]), st.integers(1, 9))
def test_any_order_is_one_stable_sort(
    rows: list[tuple[Any, ...]], directions: list[Direction], sort_bytes: int, size: int
) -> None:
    values = zip(*rows, strict=True) if rows else ((), (), ())
    types = (pa.int8(), pa.float32(), pa.string())
    columns = [pa.array(list(column), kind) for column, kind in zip(values, types, strict=True)]
    table = pa.record_batch([*columns, pa.array(range(len(rows)))], names=["i", "f", "s", "row"])
    order = RowOrder(tuple(directions))
    expected = sorted_stably(rows, directions)
    assert order.sort(table)["row"].to_pylist() == expected
    first, rest = order.sort(table.slice(0, size)), table.slice(size)
    if rows:
        kept = set(order.without_later(rest, first)["row"].to_pylist())
        last = first["row"][-1].as_py()
        assert {row for row in range(size, len(rows)) if expected.index(row) < expected.index(last)} <= kept
    batches = [table.slice(start, size) for start in range(0, len(rows), size)]
    with sort_rows(batches, sort_bytes, order) as ordered:
        assert [row for batch in ordered for row in batch["row"].to_pylist()] == expected


VALUES: dict[str, pa.Array] = {
    "int64": pa.array([3, -1, 2, 2, -1, 7] * 4),
    "uint64": pa.array([3, 1 << 63, 2, 2, (1 << 64) - 1, 7] * 4, pa.uint64()),
    "float32": pa.array([0.0, -0.0, math.nan, -1.5, math.inf, -1.5] * 4, pa.float32()),
    "date32": pa.array([3, -1, 2, 2, -1, 7] * 4, pa.int32()).cast(pa.date32()),
    "bool": pa.array([True, False, True] * 8),
    "with nulls": pa.array([3, None, 2, 2, None, 7] * 4),
    "text": pa.array(["b", "a", "", "é", "a", "b"] * 4),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_sorted_parts_are_merged_as_one_stable_sort_would(values: pa.Array) -> None:
    rows = pa.record_batch([values, pa.array(range(len(values)))], names=["v", "row"])
    parts = [FIRST_COLUMN.sort(part) for part in (rows.slice(0, 11), rows.slice(11, 0), rows.slice(11))]
    assert FIRST_COLUMN.merge(parts)["row"].equals(FIRST_COLUMN.sort(pa.concat_batches(parts))["row"])
    assert FIRST_COLUMN.merge(parts[:2]) is parts[0]
    assert FIRST_COLUMN.merge(parts[1:2]) is parts[1]


def test_a_merge_of_integers_does_not_sort_them_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pc, "array_sort_indices", None)
    streams = [
        [pa.record_batch([pa.array(np.arange(start, start + 30, 3))], names=["v"]) for start in (first, first + 30)]
        for first in (0, 1)
    ]
    merged = pa.Table.from_batches(merge_sorted(streams))
    assert merged["v"].to_pylist() == sorted(
        number for batches in streams for each in batches for number in each[0].to_pylist()
    )
