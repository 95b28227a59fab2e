"""Rows are counted by tasks that return one number each."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from tests.pickling_runner import PicklingRunner


def test_tasks_count_what_a_scan_finds_and_without_a_filter_none_runs(dataset_uri: str) -> None:
    table = pa.table({"x": pa.array([None if row % 7 == 0 else row for row in range(500)], pa.int64())})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=10)
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("x = 499 OR x % 10 = 3")
    dataset.insert(pa.table({"x": pa.array([2, None, 700])}))  # not covered by the index
    for predicate in ("x >= 0", "x < 50", "x % 2 = 0 OR x IS NULL", "x = 100000", "x IN (2, 5)"):
        runner = PicklingRunner()
        assert dataset.count_rows(predicate, runner=runner) == dataset.count_rows(predicate)
        assert [verb for verb, _ in runner.jobs] == ["count rows of"]
        assert max(runner.outcome_bytes, default=0) < 32
    runner = PicklingRunner()
    assert dataset.count_rows(runner=runner) == dataset.count_rows()
    assert not runner.jobs
    with pytest.raises(InvalidInput, match="leave out limit"):
        dataset.count_rows("x > 1", runner=runner, limit=1)
