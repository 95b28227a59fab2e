"""Commits of prepared operations, and related verbs: the reference's versions, rows and kinds of errors."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import LANCE_COMMIT_MESSAGE_KEY
from lance_ops.errors import CommitConflict
from tests.interop.two_libraries import LIBRARIES, rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

FRAGMENTS = {lance_ops: lance_ops.LanceFragment, lance: import_module("lance.fragment").LanceFragment}


def ids(uri: str) -> list[int]:
    ours, theirs = (library.dataset(uri).to_table()["id"].to_pylist() for library in (lance_ops, lance))
    assert ours == theirs
    return list(ours)


def appending(library: Any, uri: str, start: int, stop: int, **properties: str) -> Any:
    fragment = FRAGMENTS[library].create(uri, rows(start, stop))
    operation = library.LanceOperation.Append([fragment])
    return library.Transaction(read_version=1, operation=operation, transaction_properties=properties)


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_commit_batch_commits_several_appends_as_one(library: Any, other: Any, dataset_uri: str) -> None:
    library.write_dataset(rows(0, 5), dataset_uri)
    batch = [appending(library, dataset_uri, 5, 8, who="me"), appending(library, dataset_uri, 8, 9)]
    other.write_dataset(rows(20, 22), dataset_uri, mode="append")
    result = library.LanceDataset.commit_batch(
        dataset_uri, batch, None, None, None, False, 20, None, timedelta(minutes=1)
    )
    assert result["dataset"].version == 3 and len(result["merged"].operation.fragments) == 2
    assert ids(dataset_uri) == [*range(5), 20, 21, *range(5, 9)]
    read = other.dataset(dataset_uri).read_transaction(3)
    assert read.uuid == result["merged"].uuid and len(read.operation.fragments) == 2
    assert result["merged"].read_version == 1


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_commit_batch_refuses_anything_but_appends(library: Any, dataset_uri: str) -> None:
    library.write_dataset(rows(0, 5), dataset_uri)
    restore = library.Transaction(read_version=1, operation=library.LanceOperation.Restore(1))
    with pytest.raises((NotImplementedError, OSError, ValueError)):
        library.LanceDataset.commit_batch(dataset_uri, [restore])
    with pytest.raises((OSError, ValueError)):
        library.LanceDataset.commit_batch(dataset_uri, [])
    assert library.dataset(dataset_uri).version == 1


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_committing_a_transaction_keeps_its_uuid_and_properties(library: Any, other: Any, dataset_uri: str) -> None:
    library.write_dataset(rows(0, 5), dataset_uri)
    transaction = appending(library, dataset_uri, 5, 6, who="me")
    made = library.LanceDataset.commit(dataset_uri, transaction)
    read = other.dataset(dataset_uri).read_transaction(made.version)
    assert (read.uuid, dict(read.transaction_properties)) == (transaction.uuid, {"who": "me"})
    operation = appending(library, dataset_uri, 6, 7).operation
    library.LanceDataset.commit(dataset_uri, operation, read_version=2, commit_message="said")
    message = other.dataset(dataset_uri).read_transaction(3).transaction_properties
    assert dict(message) == {"__lance_commit_message": "said"} and ids(dataset_uri) == list(range(7))
    with pytest.raises(ValueError, match="read_version"):
        library.LanceDataset.commit(dataset_uri, operation)


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_an_operation_invalidated_by_a_concurrent_transaction_is_a_conflict(
    library: Any, other: Any, dataset_uri: str
) -> None:
    library.write_dataset(rows(0, 5), dataset_uri)
    transaction = appending(library, dataset_uri, 5, 6)
    other.write_dataset(pa.table({"other": [1]}), dataset_uri, mode="overwrite")
    with pytest.raises((CommitConflict, OSError, ValueError)):
        library.LanceDataset.commit(dataset_uri, transaction)
    assert other.dataset(dataset_uri).version == 2


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_truncating_a_table_keeps_its_schema_and_versions(library: Any, other: Any, dataset_uri: str) -> None:
    library.write_dataset(rows(0, 10), dataset_uri, max_rows_per_file=4)
    handle = library.dataset(dataset_uri)
    handle.truncate_table()
    assert handle.version == 2 and ids(dataset_uri) == []
    assert other.dataset(dataset_uri).schema.names == ["id", "s"]
    assert other.dataset(dataset_uri, version=1).count_rows() == 10
    assert type(other.dataset(dataset_uri).read_transaction(2).operation).__name__ == "Delete"
    other.dataset(dataset_uri).restore()
    other.dataset(dataset_uri).checkout_version(1).restore()
    assert len(ids(dataset_uri)) == 10


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_manifests_with_old_names_are_renamed(library: Any, other: Any, dataset_uri: str) -> None:
    library.write_dataset(rows(0, 5), dataset_uri, enable_v2_manifest_paths=False)
    library.dataset(dataset_uri).delete("id = 0")
    assert (Path(dataset_uri) / "_versions" / "2.manifest").exists()
    other.dataset(dataset_uri).migrate_manifest_paths_v2()
    names = sorted(path.name for path in Path(dataset_uri, "_versions").glob("*.manifest"))
    assert names == [f"{2**64 - 1 - version:020}.manifest" for version in (2, 1)]
    library.write_dataset(rows(5, 6), dataset_uri, mode="append")
    assert ids(dataset_uri) == [1, 2, 3, 4, 5] and library.dataset(dataset_uri, version=1).count_rows() == 5


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_commit_message_stands_under_the_key_of_the_reference(library: Any, other: Any, dataset_uri: str) -> None:
    library.write_dataset(rows(0, 5), dataset_uri, commit_message="first")
    assert import_module("lance.dataset").LANCE_COMMIT_MESSAGE_KEY == LANCE_COMMIT_MESSAGE_KEY
    for reader in (library, other):
        properties = reader.dataset(dataset_uri).read_transaction(1).transaction_properties
        assert properties[LANCE_COMMIT_MESSAGE_KEY] == "first"


def test_an_index_from_an_older_version_holds_values_replaced_meanwhile(tmp_path: Path) -> None:
    for library in (lance_ops, lance):
        uri = str(tmp_path / library.__name__)
        stale = library.write_dataset(pa.table({"id": range(10)}), uri)
        stale.add_columns({"v": "id"})  # in a file of its own, which can be exchanged
        (fragment,) = library.dataset(uri).get_fragments()
        changed = fragment.update_columns(pa.table({"id": range(10), "v": range(100, 110)}), "id")[0]
        exchange = library.LanceOperation.DataReplacementGroup(0, changed.files[-1])
        library.LanceDataset.commit(uri, library.LanceOperation.DataReplacement([exchange]), read_version=2)
        if library is lance:
            with pytest.raises(OSError, match="Retryable commit conflict"):
                stale.create_scalar_index("v", "BTREE")
        else:
            stale.create_scalar_index("v", "BTREE")
            assert "ScalarIndexQuery" in stale.scanner(filter="v = 105").explain_plan()
            assert [stale.count_rows(f"v = {value}") for value in (105, 5)] == [1, 0]
            assert [lance.dataset(uri).count_rows(f"v = {value}") for value in (105, 5)] == [1, 0]


def test_both_libraries_read_the_same_history(dataset_uri: str) -> None:
    for number, library in enumerate((lance_ops, lance) * 3):
        library.write_dataset(rows(number, number + 1), dataset_uri, mode="append" if number else "create")
    lance_ops.dataset(dataset_uri).delete("id = 1")
    lance.dataset(dataset_uri).update({"s": "'x'"}, where="id = 2")
    ours, theirs = (library.dataset(dataset_uri) for library in (lance_ops, lance))
    for asked in ({}, {"recent_transactions": 3}):
        mine, other = (dataset.get_transactions(**asked) for dataset in (ours, theirs))
        told = [
            [(each.uuid, each.read_version, type(each.operation).__name__) for each in found] for found in (mine, other)
        ]
        assert told[0] == told[1] and len(told[0]) == (3 if asked else 8)
    for version in range(1, 9):
        mine, other = (dataset.read_transaction(version) for dataset in (ours, theirs))
        assert (mine.uuid, mine.read_version) == (other.uuid, other.read_version)
    for dataset in (ours, theirs):
        with pytest.raises((ValueError, OSError)):
            dataset.read_transaction(99)
