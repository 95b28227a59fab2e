"""Tables whose files were migrated to another file version, read and changed by the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import UnsupportedFeature
from lance_ops.maintenance.compaction import migration
from lance_ops.maintenance.compaction.rewriting import execute_rewrite
from lance_ops.table import FeatureFlag
from lance_ops.writing import task_shares
from tests.pickling_runner import PicklingRunner

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def rows(first: int, stop: int) -> pa.Table:
    return pa.table({"id": range(first, stop), "text": [f"t{n}" for n in range(first, stop)]})


def versions(uri: str) -> list[tuple[int, int]]:
    return [file.numbers for fragment in lance_ops.dataset(uri).snapshot.fragments for file in fragment.files]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize(("before", "after"), [("2.0", "2.2"), ("2.2", "2.1")])
def test_files_of_another_version_are_rewritten_in_one_commit(
    dataset_uri: str, before: str, after: str, stable: bool
) -> None:
    options: dict[str, Any] = {"data_storage_version": before, "enable_stable_row_ids": stable}
    dataset = lance_ops.write_dataset(rows(0, 60), dataset_uri, max_rows_per_file=20, **options)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 7 = 0")
    columns = ["id", "text", *(["_rowid"] if stable else [])]
    kept = dataset.to_table(columns=columns)
    runner = PicklingRunner()
    metrics = dataset.optimize.migrate_files(after, runner=runner)
    assert (metrics.fragments_removed, metrics.fragments_added) == (3, 3)
    assert runner.jobs[0] == (f"migrate to {after},", 3)
    major, minor = map(int, after.split("."))
    assert versions(dataset_uri) == [(major, minor)] * 3
    assert dataset.data_storage_version == after
    assert not dataset.snapshot.manifest.reader_feature_flags & FeatureFlag.MIXED_FILE_VERSIONS
    assert dataset.to_table(columns=columns) == kept
    assert lance.dataset(dataset_uri).to_table(columns=columns) == kept
    lance.write_dataset(rows(100, 120), dataset_uri, mode="append")
    assert set(versions(dataset_uri)) == {(major, minor)}
    for library in (lance, lance_ops):
        assert library.dataset(dataset_uri).to_table(filter="id = 50")["text"].to_pylist() == ["t50"]
        assert library.dataset(dataset_uri).count_rows("id = 49 or id = 101") == 1
    dataset.checkout_latest()
    version = dataset.version
    assert dataset.optimize.migrate_files(after).fragments_removed == 0
    assert dataset.version == version


def test_a_table_without_rows_changes_the_version_of_its_new_files(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(rows(0, 1), dataset_uri, data_storage_version="2.0")
    dataset.delete("true")
    dataset.optimize.migrate_files("2.2")
    lance_ops.write_dataset(rows(0, 3), dataset_uri, mode="append")
    assert versions(dataset_uri) == [(2, 2)]
    assert lance.dataset(dataset_uri).count_rows() == 3


def test_what_others_do_meanwhile_is_kept(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(rows(0, 60), dataset_uri, max_rows_per_file=20, data_storage_version="2.0")
    seen: list[object] = []

    def beside(task: Any) -> Any:
        outcome = execute_rewrite(task)
        if not seen:
            seen.append(task)
            lance_ops.write_dataset(rows(60, 70), dataset_uri, mode="append")
            lance_ops.dataset(dataset_uri).delete("id = 5")
        return outcome

    monkeypatch.setattr(migration, "execute_rewrite", beside)
    dataset.optimize.migrate_files("2.2")
    assert versions(dataset_uri) == [(2, 0), (2, 2), (2, 2), (2, 2)]
    expected = [n for n in range(70) if n != 5]
    for library in (lance, lance_ops):
        assert sorted(library.dataset(dataset_uri).to_table()["id"].to_pylist()) == expected
    dataset.optimize.migrate_files("2.2")
    assert set(versions(dataset_uri)) == {(2, 2)}


@pytest.mark.parametrize("max_tasks", [1 << 14, 1], ids=["a task for each fragment", "a task for all"])
def test_a_failing_task_leaves_the_table_as_before(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, max_tasks: int
) -> None:
    monkeypatch.setattr(task_shares, "_MAX_TASKS", max_tasks)
    dataset = lance_ops.write_dataset(rows(0, 60), dataset_uri, max_rows_per_file=20, data_storage_version="2.0")
    before = set(Path(dataset_uri, "data").iterdir())

    def failing(task: Any) -> Any:
        if task.fragment_ids == (2,):
            raise OSError("disk on fire")
        return execute_rewrite(task)

    monkeypatch.setattr(migration, "execute_rewrite", failing)
    with pytest.raises(OSError, match="disk on fire"):
        dataset.optimize.migrate_files("2.2")
    assert set(Path(dataset_uri, "data").iterdir()) == before
    assert (lance_ops.dataset(dataset_uri).version, dataset.data_storage_version) == (1, "2.0")
    monkeypatch.setattr(migration, "execute_rewrite", execute_rewrite)
    dataset.optimize.migrate_files("2.2")
    assert versions(dataset_uri) == [(2, 2)] * 3
    assert lance.dataset(dataset_uri).to_table()["id"].to_pylist() == list(range(60))


@pytest.mark.parametrize(("before", "after"), [("0.1", "2.2"), ("2.2", "0.1")])
def test_version_0_1_is_refused(dataset_uri: str, before: str, after: str) -> None:
    dataset = lance_ops.write_dataset(rows(0, 5), dataset_uri, data_storage_version=before)
    with pytest.raises(UnsupportedFeature, match="write_dataset"):
        dataset.optimize.migrate_files(after)
