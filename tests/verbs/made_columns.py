"""Functions that tests name by import path."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

LIMIT = 3


def doubled(batch: pa.RecordBatch) -> pa.Table:
    return pa.table({"doubled": pc.multiply(batch["x"], 2)})
