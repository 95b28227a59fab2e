"""What a version did to rows follows from its manifest and the one before."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.health import RowChanges, last_change, row_changes, summarised_versions


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "text": ["x"] * len(ids)})


def upsert(data: lance_ops.LanceDataset) -> None:
    merge = data.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(0, 1, 100))


def delete_and_compact(data: lance_ops.LanceDataset) -> None:
    data.delete("id = 3")
    data.optimize.compact_files(materialize_deletions_threshold=0.0)


def overwrite(data: lance_ops.LanceDataset) -> None:
    lance_ops.write_dataset(rows(7), data.uri, mode="overwrite")


def restore(data: lance_ops.LanceDataset) -> None:
    data.delete("id < 3")
    data.checkout_version(1).restore()


def restore_what_was_overwritten(data: lance_ops.LanceDataset) -> None:
    overwrite(data)
    data.checkout_version(1).restore()


CHANGES: list[tuple[Callable[[lance_ops.LanceDataset], object], RowChanges]] = [
    (lambda data: data.insert(rows(8, 9)), RowChanges(inserted=2)),
    (lambda data: data.delete("id in (1, 5)"), RowChanges(deleted=2)),
    (lambda data: data.delete("id < 4"), RowChanges(deleted=4)),
    (lambda data: data.update({"text": "'y'"}, "id > 5"), RowChanges(updated=2)),
    (upsert, RowChanges(inserted=1, updated=2)),
    (delete_and_compact, RowChanges()),
    (overwrite, RowChanges(inserted=1, deleted=8)),
    (restore, RowChanges(inserted=3)),
    (restore_what_was_overwritten, RowChanges(inserted=8, deleted=1)),
    (lambda data: data.create_scalar_index("id", "BTREE"), RowChanges()),
    (lambda data: data.add_columns({"twice": "id * 2"}), RowChanges()),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_the_newest_version(
    change: Callable[[lance_ops.LanceDataset], object], expected: RowChanges, dataset_uri: str
) -> None:
    change(lance_ops.write_dataset(rows(*range(8)), dataset_uri, max_rows_per_file=4))
    (after, summary), (before, _), *_ = summarised_versions(lance_ops.dataset(dataset_uri).snapshot)
    assert row_changes(before, after, summary.operation) == expected


def test_the_first_version_and_what_manifests_do_not_tell(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows(1, 2), dataset_uri)
    data.insert(rows(3))
    second, first = (opened for opened, _ in summarised_versions(lance_ops.dataset(dataset_uri).snapshot))
    assert row_changes(None, first, "Overwrite") == RowChanges(inserted=2)
    assert row_changes(None, second, "Append") is None
    assert row_changes(first, second, "?") is None


def test_the_last_change_of_rows_is_found_below_versions_that_changed_none(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows(1, 2, 3), dataset_uri, max_rows_per_file=1)
    data.delete("id = 2")
    data.optimize.compact_files()
    data.create_scalar_index("id", "BTREE")
    data.add_columns({"twice": "id * 2"})
    newest = lance_ops.dataset(dataset_uri).snapshot
    found = last_change(newest)
    assert found is not None and newest.version > 4
    assert (found.version, found.committed_at) == (2, newest.at(2).manifest.timestamp)
    assert last_change(newest, above=2) is None
    data.cleanup_old_versions(retain_versions=2)
    oldest = last_change(lance_ops.dataset(dataset_uri).snapshot)
    assert oldest is not None and oldest.version == newest.version - 1, "no retained version changed rows"


def test_a_version_without_its_predecessor_is_no_change_if_its_operation_changes_no_rows(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows(1, 2, 3), dataset_uri)
    data.insert(rows(4))
    data.create_scalar_index("id", "BTREE")
    data.cleanup_old_versions(retain_versions=1)
    assert last_change(lance_ops.dataset(dataset_uri).snapshot, above=1) is None
    data.insert(rows(5))
    data.cleanup_old_versions(retain_versions=1)
    found = last_change(lance_ops.dataset(dataset_uri).snapshot, above=1)
    assert found is not None and found.version == 4, "it inserted a row"
