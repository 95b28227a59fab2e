"""Compare the change feed with the rows of both versions."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.file import FileReader
from lance_ops.reading.change_feed import changes_between
from lance_ops.snapshot.row_lineage import RowLineage
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"a": range(start, stop), "b": [f"t{number}" for number in range(start, stop)]})


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with a past.

    1 create, 2 append, 3 delete, 4 update, 5 and 6 compact, 7 append, 8 update of what an update had moved, 9 delete,
    10 overwrite, 11 restore of 8, 12 update.
    """
    dataset_uri = str(tmp_path_factory.mktemp("past") / "data.lance")
    lance_ops.write_dataset(rows(0, 50), dataset_uri, enable_stable_row_ids=True, max_rows_per_file=20)
    made = lance_ops.write_dataset(rows(50, 60), dataset_uri, mode="append")
    made.delete("a % 7 = 3")
    made.update({"b": "'first'"}, where="a % 10 < 2")
    made.optimize.compact_files(target_rows_per_fragment=30)
    made = lance_ops.write_dataset(rows(60, 65), dataset_uri, mode="append")
    made.update({"b": "'second'"}, where="a in (1, 2, 61)")
    made.delete("a in (0, 2, 62)")
    lance_ops.write_dataset(rows(100, 104), dataset_uri, mode="overwrite")
    lance_ops.dataset(dataset_uri, version=8).restore()
    made = lance_ops.dataset(dataset_uri)
    made.update({"b": "'third'"}, where="a = 20")
    assert made.version == 12
    return dataset_uri


@pytest.fixture
def dataset(past: str, dataset_uri: str) -> lance_ops.LanceDataset:
    """Return a copy of the table that a test can change."""
    shutil.copytree(past, dataset_uri)
    return lance_ops.dataset(dataset_uri)


def content(dataset: lance_ops.LanceDataset, version: int) -> dict[int, dict[str, object]]:
    """Return a version's rows by id."""
    if version == 0:
        return {}
    table = lance_ops.dataset(dataset.uri, version=version).to_table(["a", "b"], with_row_id=True)
    return {row["_rowid"]: row for row in table.to_pylist()}


@pytest.mark.parametrize("end", range(1, 13))
def test_changes_between_any_two_versions_equal_the_compared_rows(past: str, end: int) -> None:
    dataset = lance_ops.dataset(past)
    after = content(dataset, end)
    for begin in range(end + 1):
        before = content(dataset, begin)
        delta = dataset.delta(begin_version=begin, end_version=end)
        inserted = {row["_rowid"]: row for row in delta.get_inserted_rows().read_all().to_pylist()}
        updated = {row["_rowid"]: row for row in delta.get_updated_rows().read_all().to_pylist()}
        deleted = delta.get_deleted_row_ids().read_all().column("_rowid").to_pylist()
        assert inserted.keys() == after.keys() - before.keys()
        assert deleted == sorted(before.keys() - after.keys())
        assert updated.keys() == {key for key in before.keys() & after.keys() if before[key] != after[key]}
        for row_id, row in (inserted | updated).items():
            assert {name: row[name] for name in ("a", "b", "_rowid")} == after[row_id]


def test_change_feed_has_the_table_columns_and_the_row_columns(dataset: lance_ops.LanceDataset) -> None:
    reader = dataset.delta(11).get_updated_rows()
    assert reader.schema.names == ["a", "b", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert reader.read_all().to_pylist() == [
        {"a": 20, "b": "third", "_rowid": 20, "_row_created_at_version": 1, "_row_last_updated_at_version": 12}
    ]


def test_changes_across_a_restore_are_the_rows_that_it_brought_back(dataset: lance_ops.LanceDataset) -> None:
    delta = dataset.delta(begin_version=9, end_version=11)
    assert delta.get_inserted_rows().read_all().column("a").to_pylist() == [0, 62, 2]
    assert delta.get_updated_rows().read_all().num_rows == 0
    delta = dataset.delta(begin_version=4, end_version=3)
    with pytest.raises(InvalidInput, match="begin version 4 is newer than end version 3"):
        delta.get_inserted_rows()


def test_transactions_in_between_are_listed_oldest_first(dataset: lance_ops.LanceDataset) -> None:
    listed = dataset.delta(begin_version=8, end_version=11).list_transactions()
    assert [made.operation.name for made in listed if made is not None] == ["Delete", "Overwrite", "Restore"]


def test_shared_fragments_are_not_compared_and_no_data_file_is_read(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_ops.write_dataset(rows(200, 300), dataset.uri, mode="append")
    decoded: list[tuple[int, int]] = []
    read = Snapshot.lineage

    def count(self: Snapshot, fragment: Fragment) -> RowLineage:
        decoded.append((self.version, fragment.id))
        return read(self, fragment)

    monkeypatch.setattr(Snapshot, "lineage", count)
    monkeypatch.setattr(FileReader, "read", None)
    monkeypatch.setattr(FileReader, "take", None)
    latest = lance_ops.dataset(dataset.uri).snapshot

    changes = changes_between(12, latest)

    assert len(changes.inserted) == 100
    assert set(decoded) == {(13, latest.fragments[-1].id)}


def test_changes_since_a_removed_version_come_from_row_versions(dataset: lance_ops.LanceDataset) -> None:
    made = lance_ops.write_dataset(rows(300, 303), dataset.uri, mode="append")
    made.update({"b": "'last'"}, where="a in (30, 301)")
    made.cleanup_old_versions(timedelta(0))
    delta = made.delta(12)
    assert delta.get_inserted_rows().read_all().column("a").to_pylist() == [300, 302, 301]
    assert delta.get_updated_rows().read_all().column("a").to_pylist() == [30]
    with pytest.raises(VersionNotFound, match="no version 12 any more"):
        delta.get_deleted_row_ids()
    with pytest.raises(VersionNotFound):
        made.delta(begin_version=3, end_version=5)
    assert made.delta(0).get_inserted_rows().read_all().num_rows == made.count_rows()


@pytest.mark.parametrize(
    "versions",
    [{}, {"begin_version": 1}, {"end_version": 1}, {"compared_against": 1, "begin_version": 1, "end_version": 2}],
)
def test_change_feed_with_unclear_versions_is_refused(
    dataset: lance_ops.LanceDataset, versions: dict[str, int]
) -> None:
    with pytest.raises(InvalidInput, match="pass compared_against"):
        dataset.delta(**versions)


def test_change_feed_without_stable_row_ids_is_refused(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(rows(0, 5), dataset_uri)
    with pytest.raises(InvalidInput, match="stable row ids"):
        made.delta(0).get_inserted_rows()
