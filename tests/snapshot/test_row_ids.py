"""Stable row ids of an opened version: external sequences, caching, validation and reuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile
from lance_ops.snapshot.row_lineage import RowLineage
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import ExternalFile, Fragment, FragmentList, Manifest
from lance_ops.table.rows.row_sequences import encode_row_id_range, encode_uniform_versions


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    table = pa.table({"a": range(100)})
    return lance_ops.write_dataset(table, dataset_uri, enable_stable_row_ids=True, max_rows_per_file=40)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that records a fragment each time its row ids are decoded."""
    numbers: list[int] = []
    read = Snapshot._read_lineage

    def count(self: Snapshot, fragment_id: int) -> RowLineage:
        numbers.append(fragment_id)
        return read(self, fragment_id)

    monkeypatch.setattr(Snapshot, "_read_lineage", count)
    return numbers


def changed(dataset: lance_ops.LanceDataset, change: Callable[[Fragment], Fragment]) -> lance_ops.LanceDataset:
    """Return the dataset with other fragments in its manifest, in memory only."""
    manifest = dataset.snapshot.manifest
    fragments = FragmentList(map(change, manifest.fragments))
    return lance_ops.LanceDataset.of(dataset.snapshot.with_manifest(replace(manifest, fragments=fragments)))


def test_row_sequences_in_external_files_are_read(dataset: lance_ops.LanceDataset) -> None:
    def outside(fragment: Fragment) -> Fragment:
        sequences = (fragment.row_ids, fragment.created_at_versions, fragment.last_updated_at_versions)
        path, data, parts = f"data/{fragment.id}.rowids", b"something before", []
        for sequence in sequences:
            assert isinstance(sequence, bytes)
            parts.append(ExternalFile(path, len(data), len(sequence)))
            data += sequence
        Path(dataset.uri, path).write_bytes(data)
        ids, created, updated = parts
        return fragment.with_sequences(row_ids=ids, created_at_versions=created, last_updated_at_versions=updated)

    columns = ["a", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    external = changed(dataset, outside)
    assert external.to_table(columns).equals(dataset.to_table(columns))
    assert external._take_rows([70, 3]).column("a").to_pylist() == [70, 3]
    external.validate()


def test_the_row_id_index_is_built_once_on_first_use(dataset: lance_ops.LanceDataset, decoded: list[int]) -> None:
    dataset.to_table()
    dataset.take([1, 50])
    assert decoded == []
    for _ in range(3):
        dataset._take_rows([99, 0])
    assert decoded == [0, 1, 2]


def test_row_ids_of_a_fragment_are_decoded_once_for_all_blocks(
    dataset: lance_ops.LanceDataset, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_ops.reading.scan_plan._MAX_BLOCK_ROWS", 10)
    assert dataset.to_table(with_row_id=True).column("_rowid").to_pylist() == list(range(100))
    assert sorted(decoded) == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.with_sequences(row_ids=encode_row_id_range(0, f.physical_rows)), "two live rows have the id 0"),
        (lambda f: f.with_sequences(row_ids=encode_row_id_range(f.id * 40, 1)), "1 values for 40 rows"),
        (lambda f: f.with_sequences(row_ids=encode_row_id_range(f.id * 90, f.physical_rows)), "next row id is 100"),
        (lambda f: replace(f, row_id_meta=None), "fragment 0 has none"),
        (lambda f: f.with_sequences(created_at_versions=encode_uniform_versions(1, 3)), "3 values for 40 rows"),
        (
            lambda f: f.with_sequences(last_updated_at_versions=encode_uniform_versions(9, f.physical_rows)),
            "have version 9, which is newer",
        ),
    ],
)
def test_validation_finds_wrong_row_ids_and_versions(
    dataset: lance_ops.LanceDataset, change: Callable[[Fragment], Fragment], reason: str
) -> None:
    dataset.validate()
    with pytest.raises(CorruptFile, match=reason):
        changed(dataset, change).validate()


def test_rows_without_recorded_versions_have_the_first_version(dataset: lance_ops.LanceDataset) -> None:
    silent = changed(dataset, lambda f: replace(f, created_at_version_meta=None))
    table = silent.to_table(["_row_created_at_version"])
    assert set(table.column(0).to_pylist()) == {1}


def test_ids_of_deleted_rows_are_not_found_and_not_reused(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("a in (5, 60) or a >= 80")
    again = lance_ops.write_dataset(pa.table({"a": range(200, 203)}), dataset.uri, mode="append")
    taken = again._take_rows(np.array([102, 5, 60, 61, 99, 100, 4, 4, 10**12]))
    assert taken.column("a").to_pylist() == [202, 61, 200, 4, 4]


def test_overwrite_and_restore_do_not_reuse_row_ids(dataset: lance_ops.LanceDataset) -> None:
    lance_ops.write_dataset(pa.table({"b": range(10)}), dataset.uri, mode="overwrite")
    lance_ops.dataset(dataset.uri, version=1).restore()
    again = lance_ops.write_dataset(pa.table({"a": [7]}), dataset.uri, mode="append")
    manifest: Manifest = again.snapshot.manifest
    assert manifest.next_row_id == 111
    assert again.to_table(filter="_rowid >= 100", with_row_id=True).to_pylist() == [{"a": 7, "_rowid": 110}]
