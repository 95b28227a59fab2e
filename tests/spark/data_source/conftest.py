"""A table that the tests of `format("lance")` read and write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.api import write_dataset


@pytest.fixture
def numbers(dataset_uri: str) -> str:
    """Twelve rows in three fragments. `x` is 0 to 11; `v` holds two floats."""
    table = pa.table(
        {
            "x": pa.array(range(12), pa.int64()),
            "name": [f"n{i}" if i % 4 else None for i in range(12)],
            "v": pa.array([[float(i), None] if i % 5 else None for i in range(12)], pa.list_(pa.float32(), 2)),
        }
    )
    write_dataset(table, dataset_uri, max_rows_per_file=4)
    return dataset_uri
