"""Rows that were written before the columns changed show the values that were written, or are refused."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import RetryableConflict
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.writing.create_append_overwrite import append
from lance_ops.writing.fragment_limits import FragmentLimits


def rows(start: int, stop: int) -> pa.Table:
    keys = range(start, stop)
    return pa.table({"id": keys, "v": pa.array(keys, pa.int32()), "p": [{"x": key} for key in keys]})


@pytest.fixture
def stale(dataset_uri: str) -> Snapshot:
    return lance_ops.write_dataset(rows(0, 3), dataset_uri, max_rows_per_file=2).snapshot


def append_to(stale: Snapshot) -> lance_ops.LanceDataset:
    return lance_ops.LanceDataset.of(append(stale, rows(3, 5).to_batches(), FragmentLimits(), {}))


def upsert_into(stale: Snapshot) -> lance_ops.LanceDataset:
    builder = lance_ops.LanceDataset.of(stale).merge_insert("id")
    transaction, _ = builder.when_matched_update_all().when_not_matched_insert_all().execute_uncommitted(rows(3, 5))
    return lance_ops.LanceDataset.commit(stale.uri, transaction)


@pytest.mark.parametrize("column", ["v", "p.x"])
@pytest.mark.parametrize("add", [append_to, upsert_into])
def test_rows_added_to_a_column_that_was_cast_concurrently_are_retryable(
    stale: Snapshot, add: Callable[[Snapshot], lance_ops.LanceDataset], column: str
) -> None:
    kind = pa.int64() if column == "v" else pa.int32()
    lance_ops.dataset(stale.uri).alter_columns({"path": column, "data_type": kind})

    with pytest.raises(RetryableConflict, match=f"column '{column}' was cast"):
        add(stale)

    assert add(lance_ops.dataset(stale.uri).snapshot).to_table(["id"]).num_rows == 5


def test_rows_merged_beside_a_cast_have_their_values(stale: Snapshot) -> None:
    lance_ops.dataset(stale.uri).alter_columns({"path": "v", "data_type": pa.int64()})

    lance_ops.LanceDataset.of(stale).merge_insert("id").when_not_matched_insert_all().execute(rows(3, 5))

    assert lance_ops.dataset(stale.uri).to_table(["v"])["v"].to_pylist() == [0, 1, 2, 3, 4]


def test_an_append_whose_dropped_column_id_was_reused_is_retryable(dataset_uri: str) -> None:
    stale = lance_ops.write_dataset(rows(0, 3).select(["id", "v"]), dataset_uri).snapshot
    dataset = lance_ops.dataset(dataset_uri)
    dataset.drop_columns(["v"])
    lance_ops.write_dataset(rows(5, 6).select(["id"]), dataset_uri, mode="append")
    dataset = lance_ops.dataset(dataset_uri)
    dataset.optimize.compact_files()
    dataset.add_columns(pa.field("w", pa.int32()))
    assert dataset.snapshot.schema.field("w").id == stale.schema.field("v").id

    with pytest.raises(RetryableConflict, match="'w' was added under the id of a dropped column"):
        append(stale, rows(3, 5).select(["id", "v"]).to_batches(), FragmentLimits(), {})


def test_an_append_is_compatible_with_added_dropped_and_renamed_columns(stale: Snapshot) -> None:
    dataset = lance_ops.dataset(stale.uri)
    dataset.add_columns({"w": "id * 2"})
    dataset.drop_columns(["v"])
    dataset.add_columns(pa.field("z", pa.int32()))
    dataset.alter_columns({"path": "p", "name": "q"})

    landed = append_to(stale)

    assert landed.to_table(filter="id >= 3").to_pylist() == [
        {"id": key, "q": {"x": key}, "w": None, "z": None} for key in (3, 4)
    ]
