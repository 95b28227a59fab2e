"""Data files that were written apart from their table: the manifest says which column is which field."""

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


def replaced(dataset: lance_ops.LanceDataset, fields: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """Bring in a file that numbers its own fields from 0, its columns in another order than the table's."""
    name, version = data_file_name(), dataset.data_storage_version
    path = Path(dataset.uri, "data", name)
    with LanceFileWriter(str(path), version=version) as writer:
        writer.write_batch(ADDED.select(["s", "x"]))
    file = DataFile(name, fields, columns, 2, int(version[-1]), path.stat().st_size)
    operation = DataReplacement((DataReplacementGroup(0, file),))
    lance_ops.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def placed(dataset: lance_ops.LanceDataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the table's fields and the columns that they are in the file."""
    schema = dataset.snapshot.schema
    x, s, y = schema.field("x").id, schema.field("s").id, schema.field("s").children[0].id
    return ((x, s, y), (2, 0, 1)) if dataset.data_storage_version == "2.0" else ((x, y), (1, 0))


def test_values_are_read_from_the_columns_that_the_manifest_names(dataset: lance_ops.LanceDataset) -> None:
    replaced(dataset, *placed(dataset))

    read = lance_ops.dataset(dataset.uri)

    assert read.to_table() == TABLE.append_column("x", ADDED["x"]).append_column("s", ADDED["s"])
    assert read.take([2], columns=["s", "x"]).to_pylist() == [{"s": {"y": "c"}, "x": 3}]
    assert read.to_table(["id"], "x > 1").column("id").to_pylist() == [2, 3]


def test_a_column_that_the_file_lacks_is_named(dataset: lance_ops.LanceDataset) -> None:
    fields, _ = placed(dataset)
    replaced(dataset, fields, tuple(range(3, 3 + len(fields))))

    with pytest.raises(CorruptFile, match="columns: the manifest has fields"):
        lance_ops.dataset(dataset.uri).to_table()
    with pytest.raises(CorruptFile, match="columns: the manifest has fields"):
        lance_ops.dataset(dataset.uri).stats.data_stats()
