"""Micro-batches of a stream, written and committed without a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from lance_ops.api import dataset, write_dataset
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.maintenance import batch_ledger
from lance_ops.spark.data_source import LanceStreamWriter, LanceWriter, SourceOptions

ROWS = StructType().add("x", LongType())


def writer_of(uri: str, query: str = "q") -> LanceStreamWriter:
    return LanceStreamWriter(SourceOptions.parse({"path": uri, "query": query}), ROWS)


def commit(uri: str, number: int, value: int, query: str = "q") -> None:
    """Write and commit a micro-batch of one row, as Spark does in a process of its own."""
    writer = writer_of(uri, query)
    writer.commit([writer.write(iter([pa.record_batch({"x": pa.array([value], pa.int64())})]))], number)


def written(uri: str) -> list[int]:
    return sorted(dataset(uri).to_table().column("x").to_pylist())


def test_the_last_micro_batch_may_be_repeated_also_behind_versions_of_others(dataset_uri: str) -> None:
    for number in range(12):
        commit(dataset_uri, number, number)
    commit(dataset_uri, 3, 100, query="other")
    write_dataset(pa.table({"x": [200]}), dataset_uri, mode="append")
    for _ in range(2):
        commit(dataset_uri, 11, 11)
    commit(dataset_uri, 13, 13)  # the one between had no rows
    assert written(dataset_uri) == [*range(12), 13, 100, 200]


def test_an_earlier_micro_batch_than_the_last_one_is_refused(dataset_uri: str) -> None:
    for number in range(3):
        commit(dataset_uri, number, number)
    dataset(dataset_uri).cleanup_old_versions(retain_versions=1)
    with pytest.raises(InvalidInput, match="version 3 has micro-batch 2 of query 'q'.*micro-batch 0.*another name"):
        commit(dataset_uri, 0, 3)  # of a new checkpoint
    commit(dataset_uri, 0, 3, query="again")
    assert written(dataset_uri) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [0, 1])
def test_a_micro_batch_that_a_restore_took_out_of_the_table_is_written_again(dataset_uri: str, number: int) -> None:
    write_dataset(pa.table({"x": [9]}), dataset_uri)
    for each in range(2):
        commit(dataset_uri, each, each)
    dataset(dataset_uri, 1).restore()
    commit(dataset_uri, number, number)
    assert written(dataset_uri) == [number, 9]


def test_a_refused_micro_batch_leaves_no_file(dataset_uri: str) -> None:
    for number in range(3):
        commit(dataset_uri, number, number)
    before = sorted(Path(dataset_uri, "data").iterdir())
    with pytest.raises(InvalidInput, match="micro-batch 0"):
        commit(dataset_uri, 0, 3)
    writer = writer_of(dataset_uri)
    message = writer.write(iter([pa.record_batch({"x": pa.array([3], pa.int64())})]))
    dataset(dataset_uri).add_columns(pa.schema([("y", pa.int64())]))
    with pytest.raises(SchemaMismatch, match="changed during the micro-batch"):
        writer.commit([message], 3)
    assert sorted(Path(dataset_uri, "data").iterdir()) == before


def test_a_batch_of_a_data_frame_is_named_as_what_a_micro_batch_may_have_met(dataset_uri: str) -> None:
    commit(dataset_uri, 7, 7, query="daily")
    backfill = LanceWriter.planned(
        SourceOptions.parse({"path": dataset_uri, "batch": "daily/20260131"}), ROWS, overwrite=False
    )
    backfill.commit([backfill.write(iter([pa.record_batch({"x": pa.array([8], pa.int64())})]))])
    with pytest.raises(InvalidInput, match="micro-batch 8.*Or a DataFrame was written with option 'batch' 'daily/2026"):
        commit(dataset_uri, 8, 8, query="daily")


def test_no_version_before_an_overwrite_is_read_to_find_a_micro_batch(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        commit(dataset_uri, number, number)
    write_dataset(pa.table({"x": [100]}), dataset_uri, mode="overwrite")
    read, batch_event = list[int](), batch_ledger.batch_event

    def noted(snapshot: Any, committed: Any, after: Any) -> Any:
        read.append(committed.version)
        return batch_event(snapshot, committed, after)

    monkeypatch.setattr(batch_ledger, "batch_event", noted)
    commit(dataset_uri, 0, 0)
    assert (read, written(dataset_uri)) == ([10], [0, 100])


def test_batches_of_raw_files_are_no_micro_batches(dataset_uri: str) -> None:
    for key in ("flights/2026", "flights/2026/01"):
        write_dataset(
            pa.table({"x": [1]}), dataset_uri, mode="append", transaction_properties={f"lance_ops.batch.{key}": "hash"}
        )
    commit(dataset_uri, 0, 2)
    with pytest.raises(InvalidInput, match="batch 'flights/2026' was ingested from raw files in version 1"):
        commit(dataset_uri, 0, 3, query="flights")
    assert written(dataset_uri) == [1, 1, 2]
