"""Read data files whose own schema differs from the table's: the manifest maps their columns to fields."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile
from lance_ops.core.file_names import data_file_name
from lance_ops.file import LanceFileWriter
from lance_ops.table import DataFile
from lance_ops.transactions import DataReplacement, DataReplacementGroup

TABLE = pa.table({"id": range(4)})
ADDED = pa.table({"x": [1, None, 3, 4], "s": [{"y": "a"}, {"y": "b"}, {"y": "c"}, {"y": None}]})


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def dataset(request: pytest.FixtureRequest, dataset_uri: str) -> lance_ops.LanceDataset:
    made = lance_ops.write_dataset(TABLE, dataset_uri, data_storage_version=request.param)
    made.add_columns(ADDED.schema)
    return made


def commit_file(dataset: lance_ops.LanceDataset, fields: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """Commit a file with field ids of its own, from 0, and columns in another order than the table's."""
    name, version = data_file_name(), dataset.data_storage_version
    path = Path(dataset.uri, "data", name)
    with LanceFileWriter(str(path), version=version) as writer:
        writer.write_batch(ADDED.select(["s", "x"]))
    file = DataFile(name, fields, columns, 2, int(version[-1]), path.stat().st_size)
    operation = DataReplacement((DataReplacementGroup(0, file),))
    lance_ops.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def fields_and_columns(dataset: lance_ops.LanceDataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids of the table's fields, and the columns of the file that have their values."""
    schema = dataset.snapshot.schema
    x, s, y = schema.field("x").id, schema.field("s").id, schema.field("s").children[0].id
    return ((x, s, y), (2, 0, 1)) if dataset.data_storage_version == "2.0" else ((x, y), (1, 0))


def test_scan_and_take_read_the_columns_that_the_manifest_names(dataset: lance_ops.LanceDataset) -> None:
    commit_file(dataset, *fields_and_columns(dataset))

    read = lance_ops.dataset(dataset.uri)

    assert read.to_table() == TABLE.append_column("x", ADDED["x"]).append_column("s", ADDED["s"])
    assert read.take([2], columns=["s", "x"]).to_pylist() == [{"s": {"y": "c"}, "x": 3}]
    assert read.to_table(["id"], "x > 1").column("id").to_pylist() == [2, 3]


def test_manifest_with_a_column_beyond_the_file_is_corrupt(dataset: lance_ops.LanceDataset) -> None:
    fields, _ = fields_and_columns(dataset)
    commit_file(dataset, fields, tuple(range(3, 3 + len(fields))))

    with pytest.raises(CorruptFile, match="columns: the manifest has fields"):
        lance_ops.dataset(dataset.uri).to_table()
    with pytest.raises(CorruptFile, match="columns: the manifest has fields"):
        lance_ops.dataset(dataset.uri).stats.data_stats()
