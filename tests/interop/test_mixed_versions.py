"""Tables with data files of several 2.x versions, written and changed by both libraries in turn."""

from typing import Any

import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from lance_ops.table import FeatureFlag
from tests.interop.two_libraries import LIBRARIES, ids_read_by_both, rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def ids(uri: str) -> list[int]:
    return ids_read_by_both(lance_ops.dataset(uri), lance.dataset(uri))


def versions(uri: str) -> list[tuple[int, int]]:
    return [file.numbers for fragment in lance_ops.dataset(uri).snapshot.fragments for file in fragment.files]


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_an_append_in_another_file_version_is_read_and_changed_by_both(
    library: Any, other: Any, dataset_uri: str
) -> None:
    library.write_dataset(rows(0, 20), dataset_uri, data_storage_version="2.1")
    assert not lance_ops.dataset(dataset_uri).snapshot.manifest.reader_feature_flags
    library.write_dataset(rows(20, 40), dataset_uri, mode="append", data_storage_version="2.2")
    other.write_dataset(rows(40, 60), dataset_uri, mode="append", data_storage_version="2.0")
    other.write_dataset(rows(60, 80), dataset_uri, mode="append")
    assert versions(dataset_uri) == [(2, 1), (2, 2), (2, 0), (2, 1)] and ids(dataset_uri) == list(range(80))
    manifest = lance_ops.dataset(dataset_uri).snapshot.manifest
    assert manifest.data_format.version == "2.1"
    flags = manifest.reader_feature_flags & manifest.writer_feature_flags
    assert flags & FeatureFlag.MIXED_FILE_VERSIONS

    library.dataset(dataset_uri).delete("id % 10 = 0")
    other.dataset(dataset_uri).add_columns({"twice": "id * 2"})
    library.dataset(dataset_uri).create_scalar_index("id", "BTREE")
    assert len(versions(dataset_uri)) == 8
    other.dataset(dataset_uri).update({"s": "'new'"}, "id < 5")
    left = [number for number in range(80) if number % 10]
    assert ids(dataset_uri) == left
    assert lance.dataset(dataset_uri).to_table(filter="twice = 90").column("id").to_pylist() == [45]
    library.dataset(dataset_uri).optimize.compact_files()
    assert set(versions(dataset_uri)) == {(2, 1)} and ids(dataset_uri) == left
    sticky = lance_ops.dataset(dataset_uri).snapshot.manifest.reader_feature_flags
    assert sticky & FeatureFlag.MIXED_FILE_VERSIONS


@pytest.mark.parametrize(("table", "asked"), [("0.1", "2.2"), ("2.2", "0.1")])
def test_legacy_and_2_x_files_are_never_mixed_in_one_table(dataset_uri: str, table: str, asked: str) -> None:
    lance_ops.write_dataset(rows(0, 20), dataset_uri, data_storage_version=table)
    with pytest.raises(InvalidInput, match="cannot be mixed with"):
        lance_ops.write_dataset(rows(20, 40), dataset_uri, mode="append", data_storage_version=asked)
    with pytest.raises(InvalidInput, match="cannot be mixed with"):
        lance_ops.dataset(dataset_uri).insert(rows(20, 40), data_storage_version=asked)
    assert lance_ops.dataset(dataset_uri).version == 1
