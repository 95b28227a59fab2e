"""The reference reads and changes tables with checksums; mixed tables say which files have checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import ChecksumMismatch
from lance_ops.file import checksum_report
from lance_ops.store import open_store
from lance_ops.table import DeletionFileType, deletion_checksum_report, manifest_checksum_report

lance: Any = pytest.importorskip("lance")
pytestmark = pytest.mark.interop

ROWS = 24_000
each_version = pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])


def rows(start: int = 0, stop: int = ROWS) -> pa.Table:
    ids = np.arange(start, stop)
    return pa.table({"id": ids, "x": np.sin(ids), "text": [f"text {i % 301}" for i in ids.tolist()]})


def has_checksums(uri: str) -> dict[str, bool]:
    """Return for each data file of the newest version whether it has checksums; all bytes must have theirs."""
    found = {}
    for fragment in lance_ops.dataset(uri).snapshot.fragments:
        for file in fragment.files:
            report = checksum_report(open_store(uri), f"data/{file.path}", file.file_size_bytes)
            assert not report.damaged
            found[file.path] = report.has_checksums
    return found


def same_rows(uri: str) -> pa.Table:
    theirs = lance.dataset(uri).to_table()
    assert lance_ops.dataset(uri, verify_checksums="always").to_table().equals(theirs)
    lance.dataset(uri).validate()
    return theirs


@each_version
def test_the_reference_reads_and_changes_tables_with_checksums(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "table")
    lance_ops.write_dataset(rows(), uri, data_storage_version=version, max_rows_per_file=ROWS // 2)
    lance_ops.dataset(uri).delete(f"id < 10 or (id >= {ROWS // 2} and id % 2 = 0)")  # one file of each kind
    assert all(has_checksums(uri).values())
    theirs = lance.dataset(uri)
    assert same_rows(uri).num_rows == ROWS // 2 - 10 + ROWS // 4
    assert theirs.take([0, 100]).column("id").to_pylist() == [10, 110]
    assert theirs.to_table(filter="id > 5 and id < 12").column("id").to_pylist() == [10, 11]

    theirs = lance.write_dataset(rows(ROWS, ROWS + 50), uri, mode="append")
    theirs.delete("id = 11")
    theirs.create_scalar_index("id", "BTREE")
    assert theirs.to_table(filter="id = 12").num_rows == 1
    theirs.update({"x": "2.0"}, where="id = 13")
    theirs.add_columns({"y": "x * 2"})
    mixed = has_checksums(uri)
    assert set(mixed.values()) == {True, False}
    same_rows(uri)

    lance_ops.dataset(uri).update({"text": "'new'"})
    assert set(has_checksums(uri).values()) == {True}
    same_rows(uri)


@pytest.mark.parametrize("mode", ["reencode", "try_binary_copy", "force_binary_copy"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_the_reference_compacts_files_with_checksums(tmp_path: Path, version: str, mode: str) -> None:
    uri = str(tmp_path / "table")
    lance_ops.write_dataset(rows(), uri, data_storage_version=version, max_rows_per_file=ROWS // 3)
    before = same_rows(uri)
    metrics = lance.dataset(uri).optimize.compact_files(compaction_mode=mode)
    assert metrics.fragments_removed == 3
    assert same_rows(uri).equals(before)
    assert not any(has_checksums(uri).values())


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_an_index_with_checksums_answers_the_reference(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "table")
    lance_ops.write_dataset(rows(), uri, data_storage_version=version, max_rows_per_file=ROWS // 3)
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE")
    files = [*Path(uri, "_indices").rglob("*.lance")]
    assert len(files) == 2
    for path in files:
        assert checksum_report(open_store(str(path.parent)), path.name).has_checksums
    theirs = lance.dataset(uri)
    assert "ScalarIndexQuery" in theirs.scanner(filter="id = 500").explain_plan()
    assert theirs.to_table(filter="id in (500, 20000)").column("id").to_pylist() == [500, 20_000]
    theirs.optimize.compact_files()
    assert lance.dataset(uri).to_table(filter="id = 500").num_rows == 1
    lance_ops.dataset(uri).optimize.optimize_indices()
    assert lance_ops.dataset(uri).to_table(filter="id = 500").num_rows == 1


def test_manifests_and_deletion_files_of_both_writers_say_what_they_are(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    lance_ops.write_dataset(rows(), uri)
    lance.dataset(uri).delete("id = 1")
    lance_ops.dataset(uri).delete("id = 2")
    lance.dataset(uri).delete("id < 8000")
    lance_ops.dataset(uri).delete("id = 8001")
    manifests = [path.read_bytes() for path in sorted(Path(uri, "_versions").glob("*.manifest"), reverse=True)]
    assert [manifest_checksum_report(data).has_checksums for data in manifests] == [True, False, True, False, True]
    kinds = {"arrow": DeletionFileType.ARROW_ARRAY, "bin": DeletionFileType.BITMAP}
    found = sorted(
        (path.suffix, deletion_checksum_report(kinds[path.suffix[1:]], path.read_bytes()).has_checksums)
        for path in Path(uri, "_deletions").iterdir()
    )
    assert found == [(".arrow", False), (".arrow", True), (".bin", False), (".bin", True)]
    assert same_rows(uri).num_rows == ROWS - 8001


def test_files_without_checksums_beside_files_with_them_are_read_and_verified(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    lance.write_dataset(rows(), uri, data_storage_version="2.2")
    lance_ops.write_dataset(rows(ROWS, 2 * ROWS), uri, mode="append")
    assert [*has_checksums(uri).values()] == [False, True]
    same_rows(uri)
    for path, is_ours in has_checksums(uri).items():
        file = Path(uri, "data", path)
        intact = file.read_bytes()
        changed = bytearray(intact)
        changed[intact.find(np.sin(np.arange(ROWS if is_ours else 0, 2 * ROWS))[500].tobytes()) + 3] ^= 1
        file.unlink()
        file.write_bytes(changed)
        if is_ours:
            with pytest.raises(ChecksumMismatch, match=path):
                lance_ops.dataset(uri, verify_checksums="always").to_table()
        else:
            assert lance_ops.dataset(uri, verify_checksums="always").to_table().num_rows == 2 * ROWS
        file.unlink()
        file.write_bytes(intact)
    same_rows(uri)


def test_the_reference_reads_and_changes_tables_whose_sidecars_have_checksums(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    sizes = [10, 70_000, 100_000, None, 4_300_000, 90_000]
    values = [None if size is None else np.random.default_rng(size).bytes(size) for size in sizes]
    schema = pa.schema([pa.field("id", pa.int64()), lance_ops.blob_field("blob")])

    def table(first: int) -> pa.Table:
        return pa.table([pa.array(range(first, first + 6)), lance_ops.blob_array(values)], schema=schema)

    def checked(wanted: list[bytes | None]) -> list[bool]:
        """Compare the blobs that both libraries read; return for each sidecar whether it has checksums."""
        rows = list(range(len(wanted)))
        for library, options in ((lance, {}), (lance_ops, {"verify_checksums": "always"})):
            found = library.dataset(uri, **options).take_blobs("blob", indices=rows)
            assert [None if blob is None else blob.read() for blob in found] == wanted
        lance.dataset(uri).validate()
        report = lance_ops.dataset(uri).verify()
        assert report.ok and not report.findings, str(report)
        paths = [*report.files_with_checksums, *report.files_without_checksums]
        assert all(Path(path).exists() for path in paths)
        return [path in report.files_with_checksums for path in paths if path.endswith(".blob")]

    lance_ops.write_dataset(table(0), uri, data_storage_version="2.2")
    assert checked(values) == [True, True]
    theirs = pa.table({"id": range(6, 12), "blob": lance.blob_array(values)}, schema=lance.dataset(uri).schema)
    lance.write_dataset(theirs, uri, mode="append")
    assert checked(values * 2) == [True, True, False, False]
    lance.dataset(uri).delete("id = 0")
    lance.dataset(uri).optimize.compact_files()
    assert lance.dataset(uri).get_fragments()[0].count_rows() == 11
    assert checked([*values[1:], *values]) == [False] * 3
    lance_ops.dataset(uri).update({"id": "id + 100"})
    assert checked([*values[1:], *values]) == [True] * 3
