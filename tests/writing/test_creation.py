"""Two writers create one table at the same time: the second one appends, overwrites, or deletes its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import DatasetAlreadyExists, SchemaMismatch
from lance_ops.transactions import TOKEN

ROWS = pa.table({"a": [1, 2]})


def rows_before_a_creation(uri: str, first: pa.Table, **options: object) -> pa.RecordBatchReader:
    """Return rows after which another writer creates the table, before the caller commits."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        lance_ops.write_dataset(first, uri, **options)  # type: ignore[arg-type]  # options of the write

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


def num_files(uri: str) -> int:
    return len(list(Path(uri, "data").iterdir()))


def test_append_to_a_table_created_meanwhile_commits_the_written_files(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(rows_before_a_creation(dataset_uri, ROWS), dataset_uri, mode="append")
    assert (made.version, made.count_rows(), num_files(dataset_uri)) == (2, 4, 2)


@pytest.mark.parametrize("first", [ROWS, pa.table({"b": ["other"]})], ids=["same columns", "other columns"])
def test_overwrite_of_a_table_created_meanwhile_replaces_its_rows(dataset_uri: str, first: pa.Table) -> None:
    made = lance_ops.write_dataset(
        rows_before_a_creation(dataset_uri, first), dataset_uri, mode="overwrite", data_storage_version="2.1"
    )
    assert (made.version, made.data_storage_version, num_files(dataset_uri)) == (2, "2.1", 2)
    assert made.to_table() == ROWS
    assert lance_ops.dataset(dataset_uri, version=1).to_table() == first


def test_create_fails_and_leaves_no_file_if_the_table_was_created_meanwhile(dataset_uri: str) -> None:
    with pytest.raises(DatasetAlreadyExists):
        lance_ops.write_dataset(rows_before_a_creation(dataset_uri, ROWS), dataset_uri)
    assert num_files(dataset_uri) == 1


def test_append_of_another_schema_than_was_created_meanwhile_leaves_no_file(dataset_uri: str) -> None:
    with pytest.raises(SchemaMismatch, match="created meanwhile"):
        lance_ops.write_dataset(rows_before_a_creation(dataset_uri, pa.table({"b": [1]})), dataset_uri, mode="append")
    assert num_files(dataset_uri) == 1


@pytest.mark.parametrize("mode", ["create", "append"])
def test_write_whose_token_was_committed_meanwhile_adds_no_version_and_leaves_no_file(
    dataset_uri: str, mode: str
) -> None:
    properties = {TOKEN: "t"}
    reader = rows_before_a_creation(dataset_uri, ROWS, transaction_properties=properties)
    made = lance_ops.write_dataset(reader, dataset_uri, mode=mode, transaction_properties=properties)
    assert (made.version, made.count_rows(), num_files(dataset_uri)) == (1, 2, 1)
    assert lance_ops.dataset(dataset_uri).version == 1
