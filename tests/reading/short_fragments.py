"""Tables of twelve short fragments, and scans of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_ops

__all__ = ["FRAGMENTS", "ROWS", "SCANS", "made", "table"]

ROWS, FRAGMENTS = 240, 12


def table() -> pa.Table:
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 1 << 40, ROWS)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "number": pa.array(numbers, mask=rng.random(ROWS) < 0.1),
            "text": [f"row {number}" for number in numbers.tolist()],
            "few": [None if at % 7 == 0 else f"kind {at % 3}" for at in range(ROWS)],
            "list": pa.array(
                [None if at % 13 == 0 else list(range(at % 5)) for at in range(ROWS)], pa.list_(pa.int32())
            ),
            "parts": [{"a": at, "b": str(at % 7)} for at in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=ROWS * 4), pa.float32()), 4),
            "same": pa.array(["one"] * ROWS),
        }
    )


def made(uri: Path | str, rows: pa.Table | None = None, **options: Any) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(
        table() if rows is None else rows, uri, max_rows_per_file=ROWS // FRAGMENTS, **options
    )


SCANS: list[dict[str, Any]] = [
    {},
    {"columns": ["text", "parts"], "with_row_id": True, "with_row_address": True},
    {"filter": "id % 3 = 0", "batch_size": 5},
    {"filter": "id % 3 = 0 AND few = 'kind 1'", "columns": ["list", "id"], "late_materialization": True},
    {"filter": "id = 77 OR id = 201", "with_row_id": True},
    {"filter": "parts IS NOT NULL AND id > 200", "columns": ["parts", "vector"], "late_materialization": False},
    {"filter": "number IS NULL", "columns": ["same"], "batch_size": 7, "strict_batch_size": True},
    {"filter": "id < 0"},
    {"filter": "id >= 0", "offset": 33},
    {"offset": 33, "columns": ["id"]},
    {"filter": "id > 5", "include_deleted_rows": True, "with_row_id": True},
    {"filter": "id > 5", "columns": [], "with_row_address": True},
    {"filter": "id > 5", "batch_readahead": 1},
]
