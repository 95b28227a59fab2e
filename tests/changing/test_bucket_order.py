from __future__ import annotations

import numpy as np
import pytest

from lance_ops.changing.merge_insert.by_tasks import order_by_bucket


@pytest.mark.parametrize("num_buckets", [1, 5, 1 << 16, (1 << 16) + 5])
@pytest.mark.parametrize("num_rows", [0, 1, 1000])
def test_rows_are_ordered_by_bucket_stably_and_each_bucket_ends_where_the_next_begins(
    num_buckets: int, num_rows: int
) -> None:
    buckets = np.random.default_rng(num_rows).integers(0, num_buckets, num_rows)
    buckets[:2] = num_buckets - 1
    order, ends = order_by_bucket(buckets, num_buckets)
    assert order.tolist() == sorted(range(num_rows), key=lambda row: buckets[row])
    assert ends.tolist() == np.searchsorted(np.sort(buckets), np.arange(num_buckets), side="right").tolist()
