"""Fragments that one library writes and commits are read by the other."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import DatasetBasePath, LanceOperation, Transaction
from lance_ops.errors import DatasetAlreadyExists, InvalidInput, SchemaMismatch
from lance_ops.fragment import write_fragments
from tests.interop.transactions import shape_of

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"id": range(10), "s": [f"s{i}" for i in range(10)]})


def written(data: Any, uri: Any, **options: Any) -> Transaction:
    transaction = write_fragments(data, uri, return_transaction=True, **options)
    assert isinstance(transaction, Transaction)
    return transaction


def theirs(data: Any, uri: Any, **options: Any) -> Any:
    return import_module("lance.fragment").write_fragments(data, uri, **options)


@pytest.mark.parametrize("mode", ["append", "create", "overwrite"])
@pytest.mark.parametrize("file_version", ["0.1", "2.0", "2.2"])
def test_committing_a_transaction_creates_a_missing_dataset(tmp_path: Path, mode: str, file_version: str) -> None:
    uri = tmp_path / "table"
    transaction = written(ROWS, uri, mode=mode, max_rows_per_file=4, data_storage_version=file_version)
    assert isinstance(transaction.operation, LanceOperation.Overwrite) and transaction.read_version == 0
    assert not (uri / "_versions").exists()
    made = lance_ops.LanceDataset.commit(uri, transaction)
    assert made.version == 1 and made.data_storage_version == file_version
    reference = lance.dataset(str(uri))
    assert reference.to_table().equals(ROWS)
    assert [fragment.count_rows() for fragment in reference.get_fragments()] == [4, 4, 2]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_transaction_has_the_reference_s_content(tmp_path: Path, mode: str) -> None:
    shapes = []
    for name, write, commit in (
        ("ours", written, lance_ops.LanceDataset.commit),
        ("theirs", lambda *a, **k: theirs(*a, return_transaction=True, **k), lance.LanceDataset.commit),
    ):
        uri = lance_ops.write_dataset(ROWS, tmp_path / name).uri
        commit(uri, write(ROWS, uri, mode=mode, max_rows_per_file=6))
        dataset = lance_ops.dataset(uri)
        assert dataset.version == 2
        assert [len(fragment.to_table()) for fragment in dataset.get_fragments()][-2:] == [6, 4]
        assert lance.dataset(uri).to_table().equals(dataset.to_table())
        transaction = dataset.read_transaction(2)
        assert transaction is not None
        shapes.append((transaction.read_version, type(transaction.operation), shape_of(transaction.operation)))
    assert shapes[0] == shapes[1]


def test_fragments_of_several_writers_are_committed_as_one_append(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(ROWS, tmp_path / "table")
    parts = [write_fragments(ROWS, place) for place in (dataset, dataset.uri, tmp_path / "table")]
    fragments = [fragment for part in parts if isinstance(part, list) for fragment in part]
    assert [fragment.id for fragment in fragments] == [part.id for part in theirs(ROWS, dataset.uri)] * 3 == [0, 0, 0]
    lance_ops.LanceDataset.commit(dataset, LanceOperation.Append(fragments), read_version=1)
    assert lance.dataset(dataset.uri).to_table().equals(pa.concat_tables([ROWS] * 4))


def test_data_that_does_not_fit_the_table_is_refused_by_both(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(ROWS, tmp_path / "table")
    with pytest.raises(OSError, match="already exists"):
        theirs(ROWS, dataset.uri, mode="create")
    with pytest.raises(DatasetAlreadyExists):
        write_fragments(ROWS, dataset, mode="create")
    other = pa.table({"id": ["a"], "s": ["b"]})
    with pytest.raises(OSError, match="schema"):
        theirs(other, dataset.uri)
    with pytest.raises(SchemaMismatch, match="'id'"):
        write_fragments(other, dataset)
    with pytest.raises(InvalidInput, match="mode 'upsert'"):
        write_fragments(ROWS, dataset, mode="upsert")
    with pytest.raises(InvalidInput, match="add_bases"):
        write_fragments(ROWS, dataset, initial_bases=[DatasetBasePath(str(tmp_path / "b"))])
    assert len(list((tmp_path / "table" / "data").iterdir())) == 1


def test_files_are_written_to_the_requested_bases(tmp_path: Path) -> None:
    uri, base = tmp_path / "table", DatasetBasePath(str(tmp_path / "base"), "side")
    transaction = written(ROWS, uri, mode="create", initial_bases=[base], target_bases=["side"])
    dataset = lance_ops.LanceDataset.commit(uri, transaction)
    more = written(ROWS, dataset, target_all_bases=True, max_rows_per_file=5)
    assert isinstance(more.operation, LanceOperation.Append)
    lance_ops.LanceDataset.commit(uri, more)
    assert lance.dataset(str(uri)).to_table().equals(pa.concat_tables([ROWS, ROWS]))
    assert len(list((tmp_path / "base").rglob("*.lance"))) == 2
    assert len(list((uri / "data").rglob("*.lance"))) == 1
