"""Writers that begin one table at the same moment: what becomes of the files of those who were not first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import DatasetAlreadyExists, SchemaMismatch
from lance_ops.transactions import TOKEN

ROWS = pa.table({"a": [1, 2]})


def late(uri: str, first: pa.Table, **options: object) -> pa.RecordBatchReader:
    """Rows that are all written when somebody else creates the table."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        lance_ops.write_dataset(first, uri, **options)  # type: ignore[arg-type]  # options of the write

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


def files(uri: str) -> int:
    return len(list(Path(uri, "data").iterdir()))


def test_who_was_not_first_appends_the_files_that_are_written(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(late(dataset_uri, ROWS), dataset_uri, mode="append")
    assert (made.version, made.count_rows(), files(dataset_uri)) == (2, 4, 2)


@pytest.mark.parametrize("first", [ROWS, pa.table({"b": ["other"]})], ids=["the same columns", "others"])
def test_an_overwrite_that_was_not_first_overwrites(dataset_uri: str, first: pa.Table) -> None:
    made = lance_ops.write_dataset(late(dataset_uri, first), dataset_uri, mode="overwrite", data_storage_version="2.1")
    assert (made.version, made.data_storage_version, files(dataset_uri)) == (2, "2.1", 2)
    assert made.to_table() == ROWS
    assert lance_ops.dataset(dataset_uri, version=1).to_table() == first


def test_a_creation_that_was_not_first_leaves_no_file(dataset_uri: str) -> None:
    with pytest.raises(DatasetAlreadyExists):
        lance_ops.write_dataset(late(dataset_uri, ROWS), dataset_uri)
    assert files(dataset_uri) == 1


def test_rows_that_do_not_fit_what_was_created_meanwhile_leave_no_file(dataset_uri: str) -> None:
    with pytest.raises(SchemaMismatch, match="created meanwhile"):
        lance_ops.write_dataset(late(dataset_uri, pa.table({"b": [1]})), dataset_uri, mode="append")
    assert files(dataset_uri) == 1


@pytest.mark.parametrize("mode", ["create", "append"])
def test_the_same_work_done_by_another_meanwhile_is_not_done_twice_and_leaves_no_file(
    dataset_uri: str, mode: str
) -> None:
    same = {TOKEN: "t"}
    reader = late(dataset_uri, ROWS, transaction_properties=same)
    made = lance_ops.write_dataset(reader, dataset_uri, mode=mode, transaction_properties=same)
    assert (made.version, made.count_rows(), files(dataset_uri)) == (1, 2, 1)
    assert lance_ops.dataset(dataset_uri).version == 1
