"""The reference reads a table whose schema grew with its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.columns import change_schema, changed_schema, plan_schema_change
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def test_the_reference_reads_added_and_wider_columns(dataset_uri: str) -> None:
    old = pa.table({"x": pa.array([1, 2], pa.int32()), "n": pa.nulls(2), "s": [{"a": 1}, None]})
    new = pa.table({"x": [1 << 40], "n": ["text"], "s": [{"a": 3, "b": [4]}], "more": [0.5]})
    lance_ops.write_dataset(old, dataset_uri)
    snapshot = Snapshot.open(dataset_uri)
    change = plan_schema_change(snapshot.schema.to_arrow_storage(), new.schema)
    change_schema(snapshot, change, changed_schema(snapshot, change), InThreads())
    lance_ops.write_dataset(new, dataset_uri, mode="append")
    table = lance.dataset(dataset_uri).to_table()
    assert table.schema == new.schema
    assert table.to_pylist() == lance_ops.dataset(dataset_uri).to_table().to_pylist()
    assert table.column("x").to_pylist() == [1, 2, 1 << 40]
    assert table.column("more").to_pylist() == [None, None, 0.5]
    lance.write_dataset(new, dataset_uri, mode="append")
    assert lance_ops.dataset(dataset_uri).count_rows() == 4
