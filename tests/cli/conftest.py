"""The table that most commands are tried on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.api import dataset, write_dataset


@pytest.fixture
def flights(dataset_uri: str) -> str:
    """Three versions: twelve rows in three fragments, two of them deleted, the rest tagged and then indexed."""
    table = pa.table({"x": pa.array(range(12), pa.int64()), "carrier": ["UA", "AA", "B6"] * 4})
    write_dataset(table, dataset_uri, max_rows_per_file=4, transaction_properties={"lance_ops.batch.day": "t"})
    opened = dataset(dataset_uri)
    opened.delete("x IN (1, 5)")
    opened.tags.create("v1", 2)
    opened.create_scalar_index("x", "BTREE")
    return dataset_uri
