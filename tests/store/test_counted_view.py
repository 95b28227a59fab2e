"""A view of mapped bytes counts what its reader announces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.store import IoCounters, IOStats, View
from lance_ops.store.counted_view import CountedView


@pytest.mark.parametrize(
    ("ranges", "operations", "num_bytes"),
    [
        ([(3, 9)], 1, 6),
        ([(0, 4), (4, 6), (7, 9)], 2, 8),
        ([(0, 6), (2, 8), (3, 5)], 1, 8),
        ([(10, 20), (0, 5), (5, 10)], 2, 20),
        ([(0, 4), (9, 9), (4, 6), (2, 2)], 1, 6),
        ([(5, 5), (7, 7)], 0, 0),
        ([(5, 5)], 0, 0),
    ],
    ids=["one", "neighbours that touch", "overlaps", "not sorted", "empty ranges", "nothing", "one empty range"],
)
def test_neighbouring_ranges_that_touch_are_one_operation(
    ranges: list[tuple[int, int]], operations: int, num_bytes: int
) -> None:
    counters = IoCounters()
    starts, stops = np.array(ranges, np.int64).T
    CountedView(View(pa.py_buffer(bytes(20))), counters).will_need(starts, stops)
    assert counters.stats() == IOStats(read_iops=operations, read_bytes=num_bytes)
